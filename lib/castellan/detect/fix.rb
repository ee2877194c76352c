# frozen_string_literal: true

module Castellan
  module Detect
    # Writes what to change for each case of a {Verdict}, as code at the line where it belongs.
    #
    #   text, refused = Fix.new(cases).of(one)
    #   # => ["add .preload(:employee, :groups) where the users are loaded: app/controllers/users_controller.rb:9", nil]
    #
    # Associations that are missing at one load are written as one call. Where no preload can help it says why instead. Every kind
    # of text is tested by applying it and counting again (test/detect/fixes).
    class Fix
      MOST_LEVELS = 3
      private_constant :MOST_LEVELS

      def initialize(cases)
        @cases = cases
        @cures = {}.compare_by_identity
        @alone = {}.compare_by_identity
      end

      # @return [Array(String, nil), Array(nil, String)] the text, or the reason why there is none
      def of(one) = [said(one, cure(one).text), said(one, cure(one).refused)]

      # @return [Hash, nil] what a trial can preload at the parent's load
      def tree(one) = cure(one).preload

      # @return [Hash, nil] what a trial must do besides
      def remedy(one) = cure(one).remedy

      private

      # Two associations may ask the same, and nothing tells which of them was meant.
      def said(one, text)
        return text if text.nil? || one.rivals.empty?

        "#{text} (ambiguous: #{one.rivals.join(" and ")} asks the same)"
      end

      def cure(one) = @cures[one] ||= write(one)

      def write(one)
        case one.kind
        when :write_loop then write_loop(one)
        when :duplicate
          Cure.new(text: "ask once and keep the answer: these #{one.group.count} statements are the same, values included",
                   remedy: { together: nil })
        else one.link ? association(one) : BulkFix.new(one).cure
        end
      end

      # A walk loads the association as declared; everything else asks the database for a part of it.
      def walked?(one) = !one.group.association.nil?

      def association(one)
        return Cure.refused("nobody knows where the #{Words.plural(one.link.model)} were loaded") unless one.parent || walked?(one)
        return unseen(one) unless one.parent
        return recursive(one) if recursive?(one)
        return deep(one) if deep?(one)
        return anew(one) if anew?(one)

        addable?(one) ? association_with(one, merged(one)) : alone(one)
      end

      def unseen(one)
        Cure.refused("no load of several #{Words.plural(one.link.model)} was seen, to which #{one.link.name} could be added")
      end

      # Whether the records come from the same walk at the same line: a method that goes through a tree and calls itself.
      # A line that walks twice, from one and from each of its own, calls nothing.
      def recursive?(one)
        one.parent.site == one.site && one.parent.walk == one.link.name && WrittenCall.at(one.site).scan(".#{one.link.name}").size < 2
      end

      def recursive(one)
        deep = one.models.preload(Preload.path([one.link.name, one.link.name]))
        Cure.refused("#{one.link} is walked at #{CallSite.location(one.site)} by a method that calls itself, and a preload there asks " \
                     "again: add .#{deep}, as deep as the tree goes, where its first record is loaded, or read the tree at once, by " \
                     "WITH RECURSIVE")
      end

      # Whether a tree or a list is followed from record to record, so that more were asked than had been loaded.
      def deep?(one)
        return false unless walked?(one) && one.link.target && one.parent.path.empty? && (one.parent.also.to_a - [one.site]).empty?

        one.parent.count && one.count > one.parent.count && (one.link.target <= one.link.model || one.link.model <= one.link.target)
      end

      # What is loaded of nothing asks nothing, so one level more than there are does no harm.
      def deep(one)
        levels = one.link.to == :one ? (one.count.to_f / one.parent.count).ceil : MOST_LEVELS
        root = one.dup.tap { |first| first.parent = one.parent.dup.tap { |parent| parent.also = nil } }
        Loading.new(root, Preload.path([one.link.name] * levels.clamp(2, MOST_LEVELS)))
               .cure(after: " (as deep as the records go; or read the tree at once, by WITH RECURSIVE)")
      end

      # What is asked for although it is loaded: `user.posts.reload`, or Sequel's `user.posts { |dataset| … }`.
      def anew?(one)
        name = Regexp.escape(one.link.name.to_s)
        block = "|#{name} \\{ \\|" unless one.models == ActiveRecordModels
        walked?(one) && WrittenCall.at(one.site).match?(/\.(?:#{name}(?:\.reload\b|\(reload: true\))|reload_#{name}\b#{block})/)
      end

      def anew(one)
        eager = "and then add .#{one.models.preload(Preload.path([*one.parent.path, one.link.name]))} where the " \
                "#{Words.plural(one.parent.model)} are loaded: #{CallSite.location(one.parent.site)}"
        Cure.refused("#{one.link} is asked for anew at #{CallSite.location(one.site)}, by a reload or with a block, whatever is loaded: " \
                     "read it without, #{eager}")
      end

      # The cure without those of other cases.
      def alone(one) = @alone[one] ||= association_with(one, Preload.path([*one.parent.path, one.link.name]))

      def association_with(one, tree) = walked?(one) ? Loading.new(one, tree).cure : PartialFix.new(one, tree).cure

      # Whether the call is simply added, so that other associations can be in it as well.
      def addable?(one) = alone(one).preload && !alone(one).remedy.to_h[:declare] && Loading.new(one).plain?

      def merged(one)
        together = @cases.select { |other| other.kind == :n_plus_one && other.link && other.parent && same_load?(one.parent, other.parent) }
        first, others = together.select { |other| addable?(other) }.partition { |other| Loading.new(other).first? }
        Preload.merge(*(first + others).map { |other| alone(other).preload })
      end

      def same_load?(one, other) = other.site == one.site && other.model == one.model

      def write_loop(one)
        shape = one.group.shape
        models = shape.library
        model = Words.named(shape.models, WrittenCall.at(one.site))
        return Cure.refused("no model of the table #{shape.table} is known; write several rows in one statement") if model.nil?
        return Cure.refused("a SELECT gives the rows: let one SELECT choose them all") if shape.copies?

        Cure.new(text: "write once, after the loop at #{CallSite.location(one.site)}: #{at_once(shape, models, model)} " \
                       "(callbacks and validations do not run)")
      end

      def at_once(shape, models, model)
        case shape.verb
        when "insert" then models.insert_many(model, shape)
        when "delete" then delete_at_once(shape, models, model)
        else models.update_many(model)
        end
      end

      # Rows that were chosen by one column are chosen by all of its values.
      def delete_at_once(shape, models, model)
        column = shape.equal.first
        return models.delete_many(model) if shape.equal.size != 1 || column == models.primary_key(model)

        "#{model.name}.where(#{column}: values).#{models == SequelModels ? "delete" : "delete_all"}"
      end
    end
  end
end
