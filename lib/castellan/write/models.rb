# frozen_string_literal: true

module Castellan
  module Write
    # Selects the ORM for writes; {ActiveRecordModels} and {SequelModels} have the same methods.
    #
    #   models = Models.for(Post)
    #   record = models.build
    #   models.assign(record, { title: "Hello", author: author })
    #   models.save(record)                        # => false if it is invalid: models.problems(record)
    module Models
      # The type of an attribute: the ORM's name, whether the column is an array, the values of an enum, and whether
      # the column is NOT NULL.
      Type = Struct.new(:name, :array, :allowed, :required)
      DIGITS = /\A(?:numeric|decimal)\((\d+)(?:, ?(\d+))?\)/
      private_constant :DIGITS

      # @param model [Class, Object] the model that the resource declares
      # @return [ActiveRecordModels, SequelModels]
      # @raise [ConfigurationError] for a dataset or a table without a model
      def self.for(model)
        return ActiveRecordModels.new(model) if defined?(::ActiveRecord::Base) && model.is_a?(Class) && model < ::ActiveRecord::Base
        return SequelModels.new(model) if defined?(::Sequel::Model) && model.is_a?(Class) && model < ::Sequel::Model

        raise ConfigurationError, "only records of an ActiveRecord or Sequel model can be written, got #{model.inspect[0, 60]}"
      end

      # @param limit [Integer, nil] the most characters of the column
      # @param type [String] of the column in the database
      # @return [Boolean] whether the value has more characters, or digits before the point, than the column
      def self.exceeds?(value, limit, type)
        return value.size > limit if limit && value.is_a?(String)

        digits, scale = DIGITS.match(type)&.captures
        !digits.nil? && value.to_s.to_f.abs >= 10**(digits.to_i - scale.to_i)
      end
    end
  end
end

require_relative "active_record_models"
require_relative "sequel_models"
