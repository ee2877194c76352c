# frozen_string_literal: true

require "erb"

module Castellan
  module Profile
    class Page
      # Text that is HTML already. Everything else is escaped on its way into a template.
      #
      #   Markup.of("a < b")              # => "a &lt; b"
      #   Markup.of(Markup.new("<b>"))    # => "<b>"
      class Markup < String
        # @param value [Object]
        # @return [Markup] the value as it may stand in HTML, in an element or between double or single quotes
        def self.of(value)
          return value if value.is_a?(Markup)

          new(ERB::Util.html_escape(readable(value.to_s)))
        end

        # Bytes of a request need not be UTF-8, and control characters have no place in HTML.
        def self.readable(text)
          text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
          text.scrub("\uFFFD").gsub(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/, "\uFFFD")
        end
        private_class_method :readable

        # `String#to_s` would give a plain String of it, and the template escape it again.
        def to_s = self
      end
    end
  end
end
