# frozen_string_literal: true

require "zlib"

module Castellan
  module Cache
    # Compresses cached documents, once for each coding.
    #
    #   Compression.available             # => ["br", "zstd", "gzip"]
    #   Compression.call("gzip", bytes)
    #   Compression.check(%w[gzip])       # raises ConfigurationError if a gem is missing
    #
    # Brotli needs the gem brotli, Zstandard the gem zstd-ruby.
    module Compression
      GEMS = { "br" => "brotli", "zstd" => "zstd-ruby" }.freeze
      ORDER = %w[br zstd gzip].freeze # smallest first
      GZIP_LEVEL = 9
      BROTLI_QUALITY = 9 # 11 takes twenty times as long
      ZSTD_LEVEL = 12
      private_constant :GEMS, :ORDER, :BROTLI_QUALITY, :ZSTD_LEVEL

      module_function

      # @return [Array<String>] content codings, preferred first
      def available = ORDER.select { |coding| loaded?(coding) }

      # @param codings [Array<String, Symbol>, String, Symbol]
      # @return [Array<String>] the codings, preferred first
      # @raise [ConfigurationError] if a coding is unknown or its gem is missing
      def check(codings)
        given = codings
        codings = Array(codings).map(&:to_s)
        if (codings - ORDER).any?
          raise ConfigurationError, "Castellan.keep compress: must be an Array of \"br\", \"zstd\" and \"gzip\", " \
                                    "got #{given.inspect[0, 100]}; write for example compress: %w[gzip], or [] for none"
        end

        missing = codings.find { |coding| !loaded?(coding) }
        raise ConfigurationError, "compress: #{missing.inspect} needs gem #{GEMS[missing].inspect}: write it into the Gemfile" if missing

        ORDER & codings
      end

      # @return [String] binary
      def call(coding, bytes)
        case coding
        when "gzip" then gzip(bytes)
        when "br" then ::Brotli.deflate(bytes, quality: BROTLI_QUALITY, mode: :text)
        when "zstd" then ::Zstd.compress(bytes, level: ZSTD_LEVEL)
        end
      end

      # Zlib.gzip would write the time: a strong entity tag names the same bytes in each process.
      def gzip(bytes)
        deflate = Zlib::Deflate.new(GZIP_LEVEL, Zlib::MAX_WBITS + 16)
        deflate.deflate(bytes, Zlib::FINISH)
      ensure
        deflate&.close
      end

      def loaded?(coding)
        case coding
        when "br" then require "brotli"
        when "zstd" then require "zstd-ruby"
        end
        true
      rescue LoadError
        false
      end
      private_class_method :gzip, :loaded?
    end
  end
end
