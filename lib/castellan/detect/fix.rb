# frozen_string_literal: true

module Castellan
  module Detect
    # Writes what to change for each case of a {Verdict}, as code at the line where it belongs.
    #
    #   text, refused = Fix.new(cases).of(one)
    #   # => ["add .preload(:employee, :groups) where the users are loaded: app/controllers/users_controller.rb:9", nil]
    #
    # Associations that are missing at one load are written as one call. Where no preload can help it says why instead.
    class Fix
      def initialize(cases)
        @cases = cases
      end

      # @return [Array(String, nil), Array(nil, String)] the text, or the reason why there is none
      def of(one)
        case one.kind
        when :write_loop then write_loop(one)
        when :duplicate then ["ask once and keep the answer: these #{one.group.count} statements are the same, values included", nil]
        else one.link ? association(one) : look_up(one)
        end
      end

      # @return [Hash, nil] what a trial can preload at the parent's load
      def tree(one)
        return unless one.kind == :n_plus_one && one.link && one.parent && walked?(one)

        Preload.path([*one.parent.path, one.link.name])
      end

      # @return [Hash, nil] what a trial must do besides
      def remedy(_one) = nil

      private

      # A walk loads the association as declared; everything else asks the database for a part of it.
      def walked?(one) = !one.group.association.nil?

      def association(one)
        return [nil, "nobody knows where the #{plural(one.link.model)} were loaded"] if one.parent.nil? && !walked?(one)
        return scoped(one) unless walked?(one)
        return [nil, "the records of #{one.link} come one at a time, from no common load"] if one.parent.nil?

        [add(one, merged(one)), nil]
      end

      def add(one, tree)
        all = one.parent.count ? "" : one.models.unlisted
        "add .#{one.models.preload(tree)}#{all} where the #{plural(one.parent.model)} are loaded: #{CallSite.location(one.parent.site)}"
      end

      def at(one) = CallSite.location(one.site)

      # The call for this association alone.
      def this(one) = add(one, Preload.path([*one.parent.path, one.link.name]))

      def counts(one) = one.models.count_many(one.link.target, one.link.key)

      def merged(one)
        Preload.merge(*@cases.select { |other| same_load?(one, other) }.map { |other| tree(other) || {} })
      end

      def same_load?(one, other)
        other.parent && other.parent.site == one.parent.site && other.parent.model == one.parent.model
      end

      def scoped(one)
        chain = Chain.read(one.site && CallSite.source(one.site), one.link.name)
        shape = one.group.shape
        if chain&.limited? || shape.fingerprint.include?(" offset ?") then limited(one)
        elsif chain&.batched? then ["#{this(one)} and write .each instead of .#{chain.finder} at #{at(one)}", nil]
        elsif shape.calculation? then counted(one, chain)
        elsif shape.existence? then existence(one, chain)
        elsif chain && !chain.constant? then varying(one)
        else declared(one, chain)
        end
      end

      def limited(one)
        [nil, "a limit for each record of #{one.link} becomes a limit for all of them when it is preloaded; rank the rows in the " \
              "database, by ROW_NUMBER() or LATERAL"]
      end

      def declared(one, chain)
        single = one.group.shape.single?
        return ["#{this(one)} and read .#{one.link.name} at #{at(one)}", nil] if scope(one, chain).empty?
        return [nil, "no association can be declared through the join table of #{one.link}"] unless one.models.scopable?(one.link)

        name = scoped_name(one, chain, single)
        code = one.models.scoped(one.models.macro(single ? :one : :many), name, one.link, scope(one, chain))
        ["declare in #{one.link.model.name}: #{code}; #{add(one, Preload.path([*one.parent.path, name]))}; " \
         "and read .#{name} at #{at(one)}", nil]
      end

      # The order is the statement's own, because `last` turns round the one that is written.
      def scope(one, chain)
        order = one.group.shape.order
        written = (order ? chain&.filters : chain&.unlimited&.join(".")).to_s
        written = columns(one) if written.empty?
        [written, order ? one.models.order(order) : ""].reject(&:empty?).join(".")
      end

      # Where the source does not show the condition, its columns are named and the values left to the reader.
      def columns(one)
        extra = one.group.shape.equal - [one.link.key, one.link.type]
        extra.empty? ? "" : "where(#{extra.map { |column| "#{column}: …" }.join(", ")})"
      end

      def scoped_name(one, chain, single)
        return :"chosen_#{one.link.name}" unless single

        prefix = one.group.shape.last? ? "last" : "first"
        prefix = "chosen" if chain&.finder.to_s.match?(/take|find_by/)
        :"#{prefix}_#{singular(one.link)}"
      end

      def singular(link)
        name = link.target.name[/\w+\z/]
        name.gsub(/(?<=[a-z\d])(?=[A-Z])/, "_").downcase
      end

      def counted(one, chain)
        if (one.group.shape.equal - [one.link.key, one.link.type]).any? || chain&.conditions.to_s != ""
          return [nil, "no preload answers a calculation with conditions: ask for all at once, grouped by #{one.link.key}"]
        end
        unless one.group.shape.fingerprint.start_with?("select count(")
          return ["#{this(one)} and calculate in Ruby at #{at(one)}; or ask for all at once, grouped by #{one.link.key}", nil]
        end

        grouped = "; or count them in one query: #{counts(one)}" unless one.link.through || one.link.type
        ["#{this(one)} and write .size instead of .count at #{at(one)}#{grouped}", nil]
      end

      def existence(one, chain)
        return varying(one) if chain && chain.conditions != ""

        ["#{this(one)} and write .any? instead of .exists? at #{at(one)}", nil]
      end

      def varying(one)
        [nil, "the conditions on #{one.link} at #{at(one)} differ from record to record: no preload can answer them; " \
              "ask for all at once: #{one.models.find_many(one.link.target, one.link.key)}"]
      end

      def look_up(one)
        models, model = model_of(one.group.shape)
        column = one.group.shape.equal.first
        return [nil, "no model of the table #{one.group.shape.table || "it reads"} is known"] if model.nil?
        return [nil, "the statement has no condition of the form column = value"] if column.nil?
        return [nil, "#{column} is no column of #{model.name}"] unless models.column?(model, column)

        many = one.group.shape.calculation? ? models.count_many(model, column) : models.find_many(model, column)
        ["collect the values before the loop at #{at(one)} and ask once: #{many}", nil]
      end

      def write_loop(one)
        models, model = model_of(one.group.shape)
        return [nil, "no model of the table #{one.group.shape.table} is known; write several rows in one statement"] if model.nil?

        way = { "insert" => :insert_many, "update" => :update_many, "delete" => :delete_many }.fetch(one.group.shape.verb, :update_many)
        ["write once, after the loop at #{at(one)}: #{models.public_send(way, model)} " \
         "(callbacks and validations do not run)", nil]
      end

      def model_of(shape)
        models = shape.sequel? ? SequelModels : ActiveRecordModels
        [models, models.of_table(shape.table).first]
      end

      def plural(model)
        word = model.name[/\w+\z/].gsub(/(?<=[a-z\d])(?=[A-Z])/, " ").downcase
        case word
        when /person\z/ then word.sub(/person\z/, "people")
        when /[^aeiou]y\z/ then "#{word[0..-2]}ies"
        when /(?:s|x|ch|sh)\z/ then "#{word}es"
        else "#{word}s"
        end
      end
    end
  end
end
