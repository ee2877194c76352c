# frozen_string_literal: true

require "erb"

module Castellan
  module Profile
    class Page
      # An ERB template that escapes whatever is put into it, unless that is {Markup}: nobody can forget to.
      #
      #   Template.new("<p><%= 'a < b' %></p>").result # => "<p>a &lt; b</p>"
      #
      # {View.template} makes a method of it, once, when the class is loaded.
      class Template < ERB
        # @param source [String]
        def initialize(source)
          super(source, trim_mode: "-")
        end

        # Where ERB says how a value reaches the output.
        def set_eoutvar(compiler, eoutvar = "_erbout")
          super
          compiler.insert_cmd = "#{eoutvar} << Castellan::Profile::Page::Markup.of"
        end
      end
    end
  end
end
