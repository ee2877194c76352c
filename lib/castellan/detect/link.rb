# frozen_string_literal: true

module Castellan
  module Detect
    # An association as the detector needs it, of whichever ORM. Frozen.
    #
    #   Link.new(name: :roles, model: User, target: Role, table: "roles", key: "user_id", to: :many, through: "assignments")
    #
    # `key` is the column that must equal something of the owner when the association is asked for one record at a time:
    # in the target's table, or in the one it goes `through`; `keys` are all of them where it is composite. `to` is :one or
    # :many; `type` is the column that names the model of a polymorphic owner; `declared` the class in whose source it stands, which for
    # a subclass is its superclass; `held` the column of the owner that holds the target's key, where the owner does; `makes` is
    # :join_model where declaring such an association makes a model of the table in between.
    Link = Struct.new(:name, :model, :declared, :target, :table, :key, :keys, :to, :through, :foreign, :held, :type, :makes,
                      keyword_init: true) do
      def initialize(key: nil, keys: [key].compact, **rest)
        super(key: key || keys.first, keys: keys, **rest)
        freeze
      end

      # @return [String] "User#roles"
      def to_s = "#{(declared || model).name || "(no name)"}##{name}"

      # @param shape [Shape]
      # @return [Boolean] whether a statement asks for this association of one owner. Never of the side that holds the
      #   key: a look-up by primary key can come from anywhere.
      def asked_by?(shape)
        foreign && shape.table == table && (keys - shape.equal_in(through || table)).empty? &&
          (through.nil? || shape.tables.include?(through))
      end

      # @param source [Source]
      # @return [Boolean] whether a statement looks up the record whose key the owner holds, with the key as it is written there
      def held_by?(shape, source)
        return false unless held && target && shape.table == table && shape.equal == keys

        source.names?(held.to_sym, held)
      end

      # @return [Boolean] whether the key has several columns
      def composite? = keys.size > 1
    end
  end
end
