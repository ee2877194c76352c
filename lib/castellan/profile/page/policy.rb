# frozen_string_literal: true

require "digest/sha2"

module Castellan
  module Profile
    class Page
      # Builds the Content-Security-Policy of a page and the security headers that are sent with it.
      #
      #   Policy::PAGE["content-security-policy"]                            # => "default-src 'none'; …"
      #   Policy.of_file(scripts: [text], styles: [text], speedscope: false) # for a standalone file
      #
      # Forbids inline code, eval, other origins, and frames except the flame graph. The document of
      # speedscope needs two exceptions: its style library creates an empty style element and fills it by
      # script, which the hash of the empty text allows, and it compiles a WebAssembly module to demangle C++
      # names, which `wasm-unsafe-eval` allows.
      module Policy
        EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
        WASM = "'wasm-unsafe-eval'"
        CLOSED = "default-src 'none'; base-uri 'none'"
        OWN = "#{CLOSED}; img-src 'self'; connect-src 'self'".freeze
        private_constant :EMPTY, :WASM, :CLOSED, :OWN

        # @param policy [String]
        # @param frames [String] which pages may frame this one
        # @return [Hash{String => String}] frozen response headers
        def self.headers(policy, frames: "'none'")
          { "content-security-policy" => "#{policy}; frame-ancestors #{frames}", "x-content-type-options" => "nosniff",
            "referrer-policy" => "no-referrer", "cache-control" => "no-store", "cross-origin-resource-policy" => "same-origin",
            "x-robots-tag" => "noindex", "x-frame-options" => frames == "'none'" ? "DENY" : "SAMEORIGIN" }.freeze
        end

        # @param scripts [Array<String>]
        # @param styles [Array<String>]
        # @param speedscope [Boolean] whether the file has speedscope in a frame, which inherits the policy
        # @return [String] policy for a standalone file
        def self.of_file(scripts:, styles:, speedscope:)
          scripts, styles = [scripts, styles].map { |texts| texts.map { |text| "'sha256-#{Digest::SHA256.base64digest(text)}'" } }
          "#{CLOSED}; form-action 'none'; script-src #{[*scripts, *(WASM if speedscope)].join(" ")}; " \
            "style-src #{[*styles, *(EMPTY if speedscope)].join(" ")}"
        end

        PAGE = headers("#{OWN}; form-action 'self'; script-src 'self'; style-src 'self'; frame-src 'self'")
        # For the document of speedscope, which the page frames.
        SPEEDSCOPE = headers("#{OWN}; form-action 'none'; script-src 'self' #{WASM}; style-src 'self' #{EMPTY}; font-src 'self'",
                             frames: "'self'")
      end
    end
  end
end
