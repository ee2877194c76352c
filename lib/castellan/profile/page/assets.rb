# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # The files that the page is made of, by the name in their URL. A name is looked up, never joined to a directory.
      #
      #   Assets.find("page.css").content_type            # => "text/css; charset=utf-8"
      #   Assets.find("speedscope/index.html").content    # => "<!DOCTYPE html>…"
      #   Assets.find("../page.rb")                       # => nil
      class Assets
        TYPES = {
          ".css" => "text/css; charset=utf-8", ".js" => "text/javascript; charset=utf-8", ".html" => "text/html; charset=utf-8",
          ".svg" => "image/svg+xml", ".png" => "image/png", ".ico" => "image/x-icon", ".woff2" => "font/woff2"
        }.freeze
        OWN = %w[page.css page.js theme.js badge.js icon.svg].freeze
        # As dist/release/index.html and the style sheet of speedscope 1.25.0 name them.
        SPEEDSCOPE = %w[
          index.html speedscope-GHPHNKXC.css speedscope-Y2522XSH.js SourceCodePro-Regular.ttf-ILST5JV6.woff2
          favicon-16x16-VSI62OPJ.png favicon-32x32-3EB2YCUY.png favicon-FOKUP5Y5.ico
        ].freeze
        VENDOR = File.expand_path("../../../../vendor/speedscope", __dir__)
        PATHS = OWN.to_h { |name| [name, File.join(__dir__, name)] }
                   .merge(SPEEDSCOPE.to_h { |name| ["speedscope/#{name}", File.join(VENDOR, name)] }).freeze
        private_constant :OWN, :SPEEDSCOPE, :VENDOR, :PATHS

        # One file: read at each use, because it is asked for by people and not by load.
        Asset = Struct.new(:name, :path) do
          # @return [String]
          def content = File.binread(path)

          # @return [String] for a template: UTF-8, and without the pointer to a source map that is not here
          def text = content.force_encoding(Encoding::UTF_8).gsub(%r{^(?://|/\*)# sourceMappingURL=.*$\n?}, "")

          # @return [String]
          def content_type = TYPES.fetch(File.extname(path))

          # @return [Boolean]
          def speedscope? = name.start_with?("speedscope/")
        end

        # @param name [String]
        # @return [Asset, nil]
        def self.find(name)
          path = PATHS[name] and Asset.new(name, path)
        end

        # @return [Asset] the first whose name ends so, for names that change with the version of speedscope
        # @raise [KeyError]
        def self.speedscope(ending)
          name = PATHS.keys.find { |key| key.start_with?("speedscope/") && key.end_with?(ending) }
          Asset.new(name, PATHS.fetch(name))
        end
      end
    end
  end
end
