# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Renders the 404 page.
      #
      #   MissingView.new("This profile is gone.", root: "/castellan").to_s
      class MissingView < View
        template "missing_page"

        # @param text [String]
        def initialize(text, **options)
          super(**options)
          @text = text
        end

        private

        def title = "Not there"

        def content = missing_page
      end
    end
  end
end
