# frozen_string_literal: true

require "digest"

module Castellan
  module Profile
    class Page
      # Content-Security-Policy of a page, and the security headers sent with it.
      #
      #   Policy.page.headers["content-security-policy"] # => "default-src 'none'; script-src 'self'; …"
      #   Policy.sources(scripts: [text], styles: [text], speedscope: false) # for a standalone file
      #
      # Forbids inline code, eval, other origins, and frames except the flame graph's. speedscope's own
      # document has two exceptions: its style library creates an empty style element and fills it by script,
      # which the hash of the empty text allows; and it compiles a WebAssembly module to demangle C++ names,
      # which `wasm-unsafe-eval` allows.
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

          # @return [Policy] for speedscope's document, framed by our page
          def speedscope
            @speedscope ||= new(**COMMON, **OWN, "script-src" => "'self' #{WASM}", "style-src" => "'self' #{EMPTY}",
                                                 "font-src" => "'self'", "frame-ancestors" => "'self'")
          end

          # @param scripts [Array<String>]
          # @param styles [Array<String>]
          # @param speedscope [Boolean] whether the file contains speedscope, in a frame that inherits the
          #   policy
          # @return [String] policy for a standalone file
          def sources(scripts:, styles:, speedscope:)
            more = speedscope ? { scripts: " #{WASM}", styles: " #{EMPTY}" } : {}
            text_of(**COMMON, "script-src" => "#{hashes(scripts)}#{more[:scripts]}", "style-src" => "#{hashes(styles)}#{more[:styles]}")
          end

          # @return [String]
          def text_of(**directives) = directives.map { |name, value| "#{name} #{value}" }.join("; ")

          private

          def hashes(texts) = texts.map { |text| "'sha256-#{Digest::SHA256.base64digest(text)}'" }.join(" ")
        end

        # @return [Hash{String => String}] frozen response headers
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
