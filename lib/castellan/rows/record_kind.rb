# frozen_string_literal: true

module Castellan
  module Rows
    # Which of a relationship's types a record is of: that of its own class, else of the nearest class above it.
    #
    #   RecordKind.of(relationship, Car.new)   # => 1, the position in relationship.definitions
    module RecordKind
      module_function

      # @return [Integer]
      # @raise [ConfigurationError] when no resource is declared for it
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
