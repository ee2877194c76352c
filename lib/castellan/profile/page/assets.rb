# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Finds the files of the page by the name in their URL, in a list of names.
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
        # File names of dist/release in speedscope 1.25.0.
        SPEEDSCOPE = %w[
          index.html speedscope-GHPHNKXC.css speedscope-Y2522XSH.js SourceCodePro-Regular.ttf-ILST5JV6.woff2
          favicon-16x16-VSI62OPJ.png favicon-32x32-3EB2YCUY.png favicon-FOKUP5Y5.ico
        ].freeze
        VENDOR = File.expand_path("../../../../vendor/speedscope", __dir__)
        PATHS = OWN.to_h { |name| [name, File.join(__dir__, name)] }
                   .merge(SPEEDSCOPE.to_h { |name| ["speedscope/#{name}", File.join(VENDOR, name)] }).freeze
        private_constant :OWN, :SPEEDSCOPE, :VENDOR, :PATHS

        # A file. Not cached, because requests for the page are rare.
        Asset = Struct.new(:name, :path) do
          def content = File.binread(path)

          # @return [String] UTF-8, without the source map comment, because the gem does not contain source
          #   maps
          def text = content.force_encoding(Encoding::UTF_8).gsub(%r{^(?://|/\*)# sourceMappingURL=.*$\n?}, "")

          # @return [String]
          def content_type = TYPES.fetch(File.extname(path))

          def speedscope? = name.start_with?("speedscope/")
        end

        # @param name [String]
        # @return [Asset, nil]
        def self.find(name)
          path = PATHS[name] and Asset.new(name, path)
        end

        # @param ending [String] the end of the file name; the rest changes with speedscope's version
        # @return [Asset]
        # @raise [KeyError] if there is no such file
        def self.speedscope(ending)
          name = PATHS.keys.find { |key| key.start_with?("speedscope/") && key.end_with?(ending) }
          Asset.new(name, PATHS.fetch(name))
        end
      end
    end
  end
end
