# frozen_string_literal: true

require "erb"

module Castellan
  module Profile
    class Page
      # Renders an ERB template and escapes every inserted value except {Markup}.
      #
      #   HtmlTemplate.new("<p><%= 'a < b' %></p>").result # => "<p>a &lt; b</p>"
      #
      # {View.template} compiles it to a method.
      class HtmlTemplate < ERB
        # @param source [String]
        def initialize(source) = super(source, trim_mode: "-")

        # ERB calls this to choose how `<%= %>` appends a value.
        def set_eoutvar(compiler, eoutvar = "_erbout")
          super
          compiler.insert_cmd = "#{eoutvar} << Castellan::Profile::Page::Markup.of"
        end
      end
    end
  end
end
