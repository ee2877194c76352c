# frozen_string_literal: true

module Castellan
  module Plan
    # The canonical text of a shape: what is written of each type, and what is included below it.
    #
    #   Signature.of(definition, { roles: {} }, fields)   # => "UserResource:users(email,last_name,roles{RoleResource:roles(title)},groups)"
    #
    # Two requests with the same text share one plan; the text of what can be declared is finite, a client cannot add to it.
    module Signature
      module_function

      # @return [String]
      def of(definition, tree, fields)
        parts = fields.of(definition).map { |name| name.name + below(definition, name, tree, fields) }
        hidden = (tree.keys & definition.relationships.keys) - fields.of(definition)
        hidden = hidden.map { |name| "!#{name}#{below(definition, name, tree, fields)}" }
        "#{definition.name}:#{definition.type}(#{(parts + hidden).join(",")})"
      end

      # @return [String] the signature of an included relationship's records, or nothing
      def below(definition, name, tree, fields)
        return "" unless tree.key?(name)

        "{#{definition.relationships[name].definitions.map { |related| of(related, tree[name], fields) }.join("|")}}"
      end
    end
  end
end
