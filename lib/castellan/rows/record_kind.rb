# frozen_string_literal: true

module Castellan
  module Rows
    # Finds a record's type in a polymorphic relationship, by its class or the nearest superclass.
    #
    #   RecordKind.of(relationship, Car.new)   # => 1, the position in relationship.definitions
    module RecordKind
      module_function

      # @return [Integer] the position of the type
      # @raise [ConfigurationError] if no resource is declared for the record's class
      def of(relationship, record)
        kinds = relationship.kinds.map { |kind| kind.is_a?(Class) ? kind.name : kind.to_s }
        names = record.class.ancestors.grep(Class).map(&:name)
        names.each { |name| kinds.index(name)&.then { |kind| return kind } }
        raise ConfigurationError, "#{relationship.name}: no resource is declared for records of #{record.class}; name it in resource: " \
                                  "(#{relationship.location})"
      end
    end
  end
end
