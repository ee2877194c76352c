# frozen_string_literal: true

require "json"
require "securerandom"

module Castellan
  module Verify
    # The document of the models as bytes, with holes where the viewer's own values belong, for whoever fills those.
    #
    #   Answer.output(models, document)   # => #<struct Castellan::Serialize::Output body=…, holes=[…]>
    module Answer
      module_function

      # @param models [Models]
      # @param document [Document]
      # @return [Serialize::Output]
      def output(models, document)
        mark = "castellan hole #{SecureRandom.hex} "
        tree = marked(models.tree, mark)
        text = defined?(::ActiveSupport::JSON) ? ::ActiveSupport::JSON.encode(tree) : JSON.generate(tree)
        text = text.delete_suffix("}") + "#{document.tail(models.records)}}" if document.plan.format == :json_api
        cut(text, mark)
      end

      def marked(value, mark)
        case value
        when Models::Hole then "#{mark}#{value.index} #{value.id.unpack1("H*")}"
        when Hash then value.transform_values { |inner| marked(inner, mark) }
        when Array then value.map { |inner| marked(inner, mark) }
        else value
        end
      end

      def cut(text, mark)
        body = String.new(encoding: Encoding::UTF_8)
        rest = text
        holes = []
        while (found = /"#{mark}(\d+) (\h*)"/.match(rest))
          body << found.pre_match
          holes << body.bytesize << found[1].to_i << [found[2]].pack("H*").force_encoding(Encoding::UTF_8)
          rest = found.post_match
        end
        Serialize::Output.new(body << rest, holes)
      end
      private_class_method :marked, :cut
    end
  end
end
