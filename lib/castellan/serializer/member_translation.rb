# frozen_string_literal: true

module Castellan
  module Serializer
    # Whether an attribute can be read from a row, and if not, why.
    #
    #   MemberTranslation.reason(UserSerializer.attributes_to_serialize[:email], adapter)       # => nil
    #   MemberTranslation.reason(UserSerializer.attributes_to_serialize[:full_name], adapter)   # => "its block takes the record"
    module MemberTranslation
      NAME = /\A[[:alnum:]](?:[-_[:alnum:]]*[[:alnum:]])?\z/ # JSON:API 1.1, "Member Names", as resources demand them
      RESERVED = %i[id type].freeze
      private_constant :NAME, :RESERVED

      class << self
        # @param attribute [Member]
        # @return [String, nil]
        def reason(attribute, adapter)
          return "its condition takes the record" if attribute.conditional_proc
          return "no resource may call an attribute #{attribute.key}" if RESERVED.include?(attribute.key) || !NAME.match?(attribute.key)
          return path_reason(attribute.from, adapter) if attribute.from
          return "its block takes the record" if attribute.method.is_a?(Proc)

          column_reason(attribute.method.to_sym, adapter)
        end

        # @return [String, nil]
        def column_reason(name, adapter)
          return "#{name} is neither a column nor an association of #{adapter.plural_name}" unless adapter.columns.include?(name)
          return "#{name} is private" if adapter.model.private_method_defined?(name)

          "#{name} is read by a method of the model's own" if adapter.needs_record?(name)
        end

        private

        def path_reason(path, adapter)
          *associations, column = path
          adapter = associations.reduce(adapter) do |level, name|
            association = level.association(name)
            return "#{name} is not a to-one association of #{level.plural_name}" if association.nil? || association.to_many?

            association.adapter
          end
          column_reason(column, adapter)
        rescue DeclarationError => error
          error.message
        end
      end
    end
  end
end
