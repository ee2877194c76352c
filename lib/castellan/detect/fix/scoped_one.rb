# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Writes the fix for queries that narrow an association, such as the last token of each user.
      #
      #   ScopedOne.new(one, {}).fix.text
      #   # => "declare in User: has_one :last_token, -> { where(on_behalf: false).order(id: :desc) }, …; add .preload(:last_token) where …"
      #
      # Suggests a preload if that is enough, else a scoped `has_one`, else a {LookUp}. Copies the code from
      # the source line, and only if it selects the same rows as the statement.
      class ScopedOne
        READ_FROM_LOADED = %i[size length empty? any? none? many? include? pluck ids pick take blank? present? first last cache_key
                              cache_version cache_key_with_version].freeze
        COLUMNS = %i[pluck pick include? any?].freeze # with arguments, too, these use loaded records
        ONE = %i[first first! last last! take take! find_by find_by!].freeze
        CHOSEN = %i[find_by find_by! take take!].freeze
        private_constant :READ_FROM_LOADED, :COLUMNS, :ONE, :CHOSEN

        # @param one [Verdict::Case] with a link and a parent
        # @param names [Hash] declarations of other fixes, `[class, name] => code`; adds the declaration of
        #   this fix
        def initialize(one, names)
          @one = one
          @names = names
          @link = one.link
          @shape = one.group.shape
          @models = one.models
          @source = Source.at(one.site)
          @statement = Selection.new(@shape, @link)
          @declared = Selection.declared(@link)
          @chain = Chain.at(@source, @link, @statement)
        end

        def fix
          return Loading.new(@one).fix if answered?
          return Fix.none(Fix.limit(@link)) if limited?
          return look_up if @shape.calculation? || @shape.existence?
          return Loading.new(@one, tree).fix(after: read) if whole? && @shape.columns?

          (scoped if scoped?) || look_up
        end

        private

        def look_up = LookUp.new(@one, @chain).fix

        # Whether the call sends no query after a preload, or the method checks `loaded?` first.
        def answered?
          return false unless @models == ActiveRecordModels
          return true if @source.asks_loaded?(@link.name)
          return false if @shape.calculation? && calculated?

          step = @chain&.steps&.first
          return whole? && @source.calls.any? { |call| call.name.end_with?("_ids") } if @chain.nil?

          return member? if step&.name == :include? && @shape.existence?

          READ_FROM_LOADED.include?(step&.name) && (step.arguments.empty? || COLUMNS.include?(step.name)) &&
            whole?(ordered: @shape.records? && !%i[take pick].include?(step.name))
        end

        # Whether the line calculates in the database, whatever is loaded: `[post.comments.size, post.comments.sum(:likes)]`.
        def calculated?
          !@shape.fingerprint.start_with?("select count(") || @source.steps(@link.name).any? { |steps| steps.first&.name == :count }
        end

        # Whether the statement looks for one record in the association, by its primary key.
        def member?
          key = /\A(?:\w+\.)?#{Regexp.escape(@models.primary_key(@link.target).to_s)} = /
          rest, members = @statement.conditions.partition { |condition| !condition.match?(key) }
          members.one? && @statement.tables == @declared&.tables && rest == @declared.conditions
        end

        # Whether the statement selects the records of the association as declared.
        def whole?(ordered: @shape.records?) = @statement.same?(@declared, ordered: ordered)

        def limited?
          return true if @shape.fingerprint.include?(" offset ?") || (@shape.single? && @chain&.opaque? && whole?)

          return false if !@shape.single? || @shape.existence?
          return @chain.limited? if @chain

          # Sequel ends the statement of a calculation with LIMIT 1.
          @source.limits? || !(@shape.calculation? || @source.calls?(*ONE, :get))
        end

        # Whether the line reads one record of the association, with the same conditions for all owners.
        def scoped?
          @chain && ONE.include?(@chain.finder&.name) && @shape.single? && @link.through.nil? && !@link.composite? &&
            @chain.constant? && @one.mixed.empty?
        end

        # @return [Fix, nil] nil if the line does not show the conditions of the statement
        def scoped
          scope = [@chain.code, (@models.order(@shape.order) if @shape.order)].compact.reject(&:empty?).join(".")
          return unless Selection.scoped(@link, scope)&.same?(@statement)

          existing = Selection.declared_one(@link, scope)&.name
          name, code = existing || free(scope)
          declaration = { in: owner.name, name: name, association: @link.name, scope: scope }
          Loading.new(@one, Preload.path([*@one.parent.path, name]))
                 .fix(before: ("declare in #{owner.name}: #{code}; " unless existing).to_s, declaration: declaration, after: read(name))
        end

        # With what the line itself preloads: `user.posts.includes(:comments)`.
        def tree = Preload.path([*@one.parent.path, @link.name], @chain ? @chain.preloaded : {})

        # A line that queries the association again does not use the preload by itself.
        def read(name = @link.name)
          first = ".first" if name == @link.name && @shape.single? && @link.to == :many
          "; and read .#{name}#{first} at #{CallSite.location(@one.site)}"
        end

        # The class that declares the association, because the foreign key is named after it.
        def owner = @link.declared || @link.model

        # Chooses a name that is neither a method of the class nor declared by another fix.
        # @return [Array(Symbol, String)] the name and its declaration
        def free(scope)
          prefix = @shape.last? ? "last" : "first"
          prefix = "chosen" if CHOSEN.include?(@chain.finder.name)
          name = "#{prefix}_#{Words.singular(@link.target)}"
          [name, "preloaded_#{name}", *(2..20).map { |number| "#{name}_#{number}" }].map(&:to_sym).each do |one|
            code = @models.scoped(one, @link, scope)
            next if owner.method_defined?(one) || owner.private_method_defined?(one)
            return [one, code] if (@names[[owner, one]] ||= code) == code
          end
        end
      end
    end
  end
end
