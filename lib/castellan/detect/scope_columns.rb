# frozen_string_literal: true

module Castellan
  module Detect
    # The columns that must equal something because an association is declared so, besides its key.
    #
    #   ScopeColumns.of(link)   # => ["published"], of has_many :published_posts, -> { where(published: true) }
    #
    # Of a scope that wants its owner, and of conditions that are no equations, nothing is known.
    module ScopeColumns
      class << self
        # @param link [Link]
        # @return [Array<String>]
        def of(link)
          return [] if link.target.nil?

          Detect.models(link.model) == SequelModels ? of_sequel(link) : of_active_record(link)
        end

        # @param link [Link]
        # @return [Boolean] whether it is declared with conditions at all
        def any?(link)
          return false if link.target.nil?
          return sequel_conditions?(sequel_text(link)) if Detect.models(link.model) == SequelModels

          scope = link.model.reflect_on_association(link.name).scope
          scope ? !scope.arity.zero? || evaluated(link.target, scope).to_sql.include?(" WHERE ") : false
        end

        private

        def of_active_record(link)
          scope = link.model.reflect_on_association(link.name).scope
          scope&.arity&.zero? ? evaluated(link.target, scope).where_values_hash.keys : []
        end

        # The scope is the application's code, which may want what is only there in a request.
        def evaluated(model, scope)
          model.unscoped.instance_exec(&scope) || model.unscoped
        rescue StandardError
          model.none
        end

        def sequel_conditions?(text) = text.nil? || text.include?(" where ")

        # What is true or null is no equation there.
        def of_sequel(link)
          conditions = link.model.association_reflection(link.name)[:conditions]
          Shape.new(sequel_text(link).to_s).equal | (conditions.is_a?(Hash) ? conditions.keys.map(&:to_s) : [])
        end

        # What an association's conditions and its block make of all.
        # @return [String, nil] nil where the block needs what only a request has: then nobody knows, and there may be conditions
        def sequel_text(link)
          reflection = link.model.association_reflection(link.name)
          conditions, block = reflection.values_at(:conditions, :block)
          all = link.target.dataset.unfiltered
          all = all.where(conditions) if conditions
          Fingerprint.of((block ? block.call(all) : all).sql)
        rescue StandardError
          nil
        end
      end
    end
  end
end
