# frozen_string_literal: true

module Castellan
  module Rows
    # Loads associations for all records of a collection when the first of them is about to query.
    #
    #   Together.render do
    #     Together.current.add(users)
    #     users.map { |user| user.posts.map(&:title) }   # one query for the posts of all users
    #   end
    #
    # Stores the results here and not in the records: an association becomes loaded only if
    # its own record uses it, so that nothing but the number of queries changes. One per
    # document, used by the fiber that renders it.
    class Together
      # Returned by {#answer} if the record must query for itself.
      NONE = Object.new.freeze

      Siblings = Struct.new(:records, :answers)
      private_constant :Siblings

      class << self
        # Renders a document. A document within another one shares its records.
        # @param wanted [Boolean, nil] nil: like the surrounding document, or {Castellan.together}
        # @return [Object] the block's result
        def render(wanted = nil, &block)
          around = Recording.together
          wanted = around.nil? ? Castellan.together : around if wanted.nil?
          return Recording.render_together(false, &block) unless wanted
          return yield if around

          sources.each(&:attach)
          Recording.render_together(new, &block)
        end

        # @return [Together, nil] the document that the current fiber renders
        def current = Recording.together || nil

        # @param value [Object] the value of an option
        # @param place [String] the option's name, for the error
        # @return [Boolean, nil]
        # @raise [ConfigurationError]
        def checked(value, place)
          return value if value.nil? || value == true || value == false

          raise ConfigurationError, "#{place} must be true or false, got #{value.inspect[0, 60]}"
        end

        # @param back [Boolean] whether a target refers back to one owner, so that owners cannot share it
        # @return [Hash] the targets by owner, compared by identity
        def answers(owners, targets, back:)
          counts = back ? targets.group_by(&:__id__).transform_values(&:size) : {}
          owners.zip(targets).each_with_object({}.compare_by_identity) do |(owner, target), answers|
            answers[owner] = target unless target && counts.fetch(target.__id__, 1) > 1
          end
        end

        # @return [Module] the Siblings module of the record's ORM
        def source_of(record) = sources.find { |source| source.record?(record) }

        private

        def sources
          [(ActiveRecordRows::Siblings if defined?(::ActiveRecord::Base)), (SequelRows::Siblings if defined?(::Sequel::Model))].compact
        end
      end

      def initialize
        @siblings = {}.compare_by_identity
        @added = []
        @unexplored = []
      end

      # @param records [Array<Object>] records that were loaded together
      # @return [void]
      def add(records)
        @added << records unless records.empty?
      end

      # @param query [Object] identifies the query; equal for all siblings
      # @param keep [Boolean] whether to keep the result for a second query of the record
      # @yieldparam siblings [Array<Object>] the record and those that were loaded with it
      # @yieldreturn [Hash, nil] results by record, compared by identity; nil if each must query for itself
      # @return [Object] the result, or {NONE}
      def answer(record, query, keep: false)
        siblings = siblings_of(record)
        answers = siblings.answers[query]
        unless answers
          siblings.answers[query] = answers = {}
          found = yield siblings.records if siblings.records.size > 1
          siblings.answers[query] = answers = found if found
        end
        return NONE unless answers.key?(record)

        keep ? answers[record] : answers.delete(record)
      end

      private

      def siblings_of(record)
        group(@added.shift) until @added.empty?
        explore(@unexplored.shift) until @siblings.key?(record) || @unexplored.empty?
        @siblings[record] || group([record])
      end

      def group(records)
        siblings = Siblings.new([], {})
        records.each do |record|
          next if @siblings.key?(record)

          @siblings[record] = siblings
          siblings.records << record
        end
        @unexplored << siblings unless siblings.records.empty?
        siblings
      end

      # Groups the records that the application has preloaded with others.
      def explore(siblings)
        found = Hash.new { |hash, name| hash[name] = [] }
        siblings.records.each do |record|
          self.class.source_of(record)&.each_loaded(record) { |name, related| found[name].concat(related) }
        end
        found.each_value { |related| group(related) }
      end
    end
  end
end
