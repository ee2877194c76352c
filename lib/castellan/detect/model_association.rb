# frozen_string_literal: true

module Castellan
  module Detect
    # Describes an association of ActiveRecord or Sequel. Frozen.
    #
    #   ModelAssociation.new(name: :roles, model: User, target: Role, table: "roles", key: "user_id", to: :many,
    #                        through: "assignments")
    #
    # - `key`: the column that a query for one owner compares, in the target's table or in the `through`
    #   table; `keys` are all columns of a composite key
    # - `to`: :one or :many
    # - `type`: the column that holds the class name of a polymorphic owner
    # - `declared`: the class that declares the association, which may be a superclass of `model`
    # - `foreign`: whether the other table holds the key; false for belongs_to
    ModelAssociation = Struct.new(:name, :model, :declared, :target, :table, :key, :keys, :to, :through, :foreign, :type,
                                  keyword_init: true) do
      def initialize(key: nil, keys: [key].compact, **rest)
        super(key: key || keys.first, keys: keys, **rest)
        freeze
      end

      # @return [String] "User#roles"
      def to_s = "#{(declared || model).name || "(no name)"}##{name}"

      # A belongs_to association never matches, because a lookup by primary key can come from anywhere.
      # @return [Boolean] whether the statement reads this association for one owner
      def asked_by?(shape)
        foreign && shape.table == table && ([*keys, *type] - shape.equal_in(through || table)).empty? &&
          (through.nil? || shape.tables.include?(through))
      end

      # @return [Array<String>]
      def tables = [table, through].compact

      def composite? = keys.size > 1
    end
  end
end
