# frozen_string_literal: true

module Castellan
  module Serializer
    # Finds out why an attribute needs the record, or cannot be the attribute of a resource at all.
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
        def obstacle(attribute)
          return "its condition takes the record" if attribute.conditional_proc

          "no resource may call an attribute #{attribute.key}" if RESERVED.include?(attribute.key) || !NAME.match?(attribute.key)
        end

        # @param attribute [Member]
        # @return [String, nil]
        def reason(attribute, adapter)
          return path_reason(attribute, adapter) if attribute.from
          return "its block takes the record" unless attribute.column

          column_reason(attribute.column.to_sym, adapter, as_stored: attribute.as_stored)
        end

        # @return [String, nil]
        def column_reason(name, adapter, as_stored: false)
          return "#{name} is neither a column nor an association of #{adapter.plural_name}" unless adapter.columns.include?(name)
          return if as_stored
          return "#{name} is private" if adapter.model.private_method_defined?(name)

          reason = adapter.record_reason(name)
          "#{reason}; #{Rows::ModelReasons::AS_STORED}" if reason
        end

        # @return [Boolean] whether a record gives that id as its row has it; a callback is taken to leave ids alone
        def id?(name, adapter)
          adapter.columns.include?(name) && adapter.identifies?(name)
        end

        private

        def path_reason(attribute, adapter)
          *associations, column = attribute.from
          adapter = associations.reduce(adapter) do |level, name|
            association = level.association(name)
            return "#{name} is not a to-one association of #{level.plural_name}" if association.nil? || association.to_many?

            association.adapter
          end
          column_reason(column, adapter, as_stored: attribute.as_stored)
        rescue DeclarationError => error
          error.message
        end
      end
    end
  end
end
