# frozen_string_literal: true

require "digest"

module Castellan
  module Profile
    class Page
      # What a page may load and run: the Content-Security-Policy, and the headers that go with it.
      #
      #   Policy.page.headers["content-security-policy"] # => "default-src 'none'; script-src 'self'; …"
      #   Policy.sources(scripts: [text], styles: [text], speedscope: false) # for one file: by the hashes of what stands in it
      #
      # Nothing inline, nothing evaluated, nothing from another origin, no frame but the flame graph's. The only exceptions
      # are speedscope's, in its own document: its library of styles makes an empty style element and fills it by script,
      # which the hash of the empty text allows, and no other inline style; and it compiles a WebAssembly module of its own
      # when it starts, to read the names of C++, which `wasm-unsafe-eval` allows, and no evaluation of JavaScript.
      class Policy
        EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
        WASM = "'wasm-unsafe-eval'"
        COMMON = { "default-src" => "'none'", "base-uri" => "'none'", "form-action" => "'none'" }.freeze
        OWN = { "script-src" => "'self'", "style-src" => "'self'", "img-src" => "'self'", "connect-src" => "'self'" }.freeze
        private_constant :EMPTY, :WASM, :COMMON, :OWN

        class << self
          # @return [Policy] for the pages of Castellan
          def page
            @page ||= new(**COMMON, **OWN, "form-action" => "'self'", "frame-src" => "'self'", "frame-ancestors" => "'none'")
          end

          # @return [Policy] for speedscope, which stands in a frame of ours
          def speedscope
            @speedscope ||= new(**COMMON, **OWN, "script-src" => "'self' #{WASM}", "style-src" => "'self' #{EMPTY}",
                                                 "font-src" => "'self'", "frame-ancestors" => "'self'")
          end

          # @param scripts [Array<String>]
          # @param styles [Array<String>]
          # @param speedscope [Boolean] whether it stands in the file, in a frame that inherits the policy
          # @return [String] a policy for a file that has everything inside
          def sources(scripts:, styles:, speedscope:)
            more = speedscope ? { scripts: " #{WASM}", styles: " #{EMPTY}" } : {}
            text_of(**COMMON, "script-src" => "#{hashes(scripts)}#{more[:scripts]}", "style-src" => "#{hashes(styles)}#{more[:styles]}")
          end

          # @return [String]
          def text_of(**directives) = directives.map { |name, value| "#{name} #{value}" }.join("; ")

          private

          def hashes(texts) = texts.map { |text| "'sha256-#{Digest::SHA256.base64digest(text)}'" }.join(" ")
        end

        # @return [Hash{String => String}] frozen: add to a copy
        attr_reader :headers

        # @param directives [Hash{String => String}]
        def initialize(**directives)
          @headers = {
            "content-security-policy" => self.class.text_of(**directives), "x-content-type-options" => "nosniff",
            "referrer-policy" => "no-referrer", "cache-control" => "no-store", "cross-origin-resource-policy" => "same-origin",
            "x-robots-tag" => "noindex", "x-frame-options" => directives["frame-ancestors"] == "'none'" ? "DENY" : "SAMEORIGIN"
          }.freeze
          freeze
        end
      end
    end
  end
end
