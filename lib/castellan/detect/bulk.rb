# frozen_string_literal: true

module Castellan
  module Detect
    # Writes the code of one query for many values; the code names the list of them `values`.
    #
    #   Bulk.of(ActiveRecordModels).records(Tag, "id")   # => "Tag.where(id: values).index_by(&:id)"
    #   Bulk.of(ActiveRecordModels).calculation(Token, "user_id", "select count(*) from …")
    #   # => "Token.where(user_id: values).group(:user_id).count"
    module Bulk
      CALCULATION = /\Aselect (count|sum|avg|min|max)\((?:\*|\?|(?:\w+\.)?(\w+))\)/

      # The part that ActiveRecord and Sequel share.
      module Common
        # @param conditions [String] further conditions as Ruby code
        # @return [String, nil] the code; nil if the SELECT is not a simple calculation
        def calculation(model, column, fingerprint, conditions = "")
          name, of = fingerprint.match(CALCULATION)&.captures
          name && grouped(where(model, column, conditions), column, name, of)
        end

        private

        def where(model, column, conditions) = [model.name, "where(#{column}: values)", conditions].reject(&:empty?).join(".")

        def unique?(model, column) = Array(model.primary_key).map(&:to_s) == [column]
      end
      private_constant :Common

      # Writes ActiveRecord code.
      module ActiveRecordBulk
        extend Common

        METHODS = { "avg" => "average", "min" => "minimum", "max" => "maximum" }.freeze

        # @return [String]
        def self.records(model, column, conditions = "")
          "#{where(model, column, conditions)}.#{unique?(model, column) ? "index_by" : "group_by"}(&:#{column})"
        end

        # @return [String] code that returns the values that have rows
        def self.existing(model, column, conditions = "") = "#{where(model, column, conditions)}.distinct.pluck(:#{column})"

        def self.grouped(where, column, name, of)
          "#{where}.group(:#{column}).#{METHODS.fetch(name, name)}#{"(:#{of})" if of}"
        end
        private_class_method :grouped
      end

      # Writes Sequel code.
      module SequelBulk
        extend Common

        def self.records(model, column, conditions = "")
          "#{where(model, column, conditions)}.#{unique?(model, column) ? "as_hash" : "to_hash_groups"}(:#{column})"
        end

        def self.existing(model, column, conditions = "") = "#{where(model, column, conditions)}.distinct.select_map(:#{column})"

        def self.grouped(where, column, name, of)
          return "#{where}.group_and_count(:#{column}).as_hash(:#{column}, :count)" if name == "count" && of.nil?

          "#{where}.group(:#{column}).select_hash(:#{column}, Sequel.function(:#{name}, :#{of}).as(:#{name}))"
        end
        private_class_method :grouped
      end
      private_constant :ActiveRecordBulk, :SequelBulk

      # @param models [Module] {ActiveRecordModels} or {SequelModels}
      # @return [Module] the matching writer
      def self.of(models) = models == SequelModels ? SequelBulk : ActiveRecordBulk
    end
  end
end
