# frozen_string_literal: true

require "erb"

module Castellan
  module Profile
    class Page
      # Marks a String as HTML. {HtmlTemplate} escapes all other values.
      #
      #   Markup.of("a < b")              # => "a &lt; b"
      #   Markup.of(Markup.new("<b>"))    # => "<b>"
      class Markup < String
        # @param value [Object]
        # @return [Markup] the value, escaped for element content and quoted attributes
        def self.of(value)
          return value if value.is_a?(Markup)

          new(ERB::Util.html_escape(readable(value.to_s)))
        end

        # Replaces invalid UTF-8 and control characters, which HTML does not allow.
        def self.readable(text)
          text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
          text.scrub("\uFFFD").gsub(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/, "\uFFFD")
        end
        private_class_method :readable

        # `String#to_s` would return a plain String, which the template would escape again.
        def to_s = self
      end
    end
  end
end
