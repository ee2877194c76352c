# frozen_string_literal: true

require "set"
require_relative "source"
require_relative "translation"
require_relative "association_tree"
require_relative "layout"
require_relative "arrangement"
require_relative "opaque_objects"

module Castellan
  module Serializer
    # The document of a relation or dataset: types whose serializer is plain are written from rows, the others from records that
    # are loaded once, in one statement a type. Of records that were given, where the included types are plain: what they have
    # loaded is read from them, and the rest asked of rows for all at once.
    #
    #   document = RelationDocument.new(UserSerializer, Source.of(User.active), Options.new(UserSerializer, include: [:roles]))
    #   document.rows?      # => true, unless the include leads through what only records know
    #   document.to_json
    #
    # The rows of an opaque primary type are those of the records that the caller's relation loaded.
    class RelationDocument
      # @param source [Source]
      # @param options [Options]
      # @return [Array] the records of a relation, with what their serializers ask of them
      def self.records(serializer, source, options)
        AssociationTree.load(source.scope, Translation.of(serializer, source.model), options)
      rescue DeclarationError
        Preloading.records(source.scope, [])
      end

      # @param source [Source]
      # @param options [Options]
      def initialize(serializer, source, options)
        @source = source
        @options = options
        @translation = Translation.of(serializer, source.model)
        @tree = walkable(@translation, options.tree)
        @reached = reached(@translation, @tree, {})
        @arrangement = Arrangement.new(options, @reached)
        check
      rescue DeclarationError => error
        @refusal = error.message
      end

      # @return [Boolean]
      def rows?
        @refusal.nil?
      end

      # @return [String, nil] why it is written from records as a whole
      attr_reader :refusal

      # @return [Plan::FetchPlan]
      def plan
        @plan ||= @arrangement.plan(Plan.compile(definition, request))
      end

      # @return [String] the document's bytes
      # @raise [DeclarationError] where rows turn out not to know an association, or two records from each other
      def to_json(*)
        return pure if plain?

        @translation.opaque? ? of_records : mixed(rows(scope))
      end

      # @return [Array<Array(Plan::Node, Translation)>] for {Explanation}
      def parts
        plan.nodes.map { |node| [node, translation(node)] }
      end

      private

      def plain?
        plan.nodes.none? { |node| translation(node).opaque? }
      end

      def definition
        @translation.resource.definition
      end

      # What is read by rows.
      def scope
        @source.records? ? @source.scope : @translation.adapter.scope(@source.scope)
      end

      def translation(node)
        node.definition.resource.translation
      end

      # The part of the include that exists, as far as rows can take it.
      def walkable(translation, tree)
        tree.each_with_object({}) do |(name, below), walked|
          relationship = (translation.serializer.relationships_to_serialize || {})[name] or next # as jsonapi-serializer: passed over
          reader = translation.association(name)
          reason = reader.walks? && reader.links? ? obstacle(relationship, reader.target) : reader.reason
          raise DeclarationError, "#{translation.serializer.name} includes #{name}, and #{reason}" if reason

          walked[name] = walkable(reader.target, below)
        end
      end

      # jsonapi-serializer writes a record that is included again, also when it is one of the primary data; and it looks for fields,
      # and for records that it has written, by the type that the relationship says.
      def obstacle(relationship, target)
        type = target.serializer.record_type
        return "it leads to #{type} again, which only records show as they should be" if type == @translation.serializer.record_type
        return "its linkage has another type than its records" unless relationship.static_record_type == type

        "the id of #{target.serializer.name} is not a column" unless target.id_of_column?
      end

      # Everything that could be refused is refused before anything is read.
      def check
        reached = [definition, *plan.nodes.map(&:definition)].uniq
        reached.each { |one| Document::DeclarationCheck.of(one) }
        included = plan.nodes.drop(1)
        @source.records? ? check_records(included) : check_preloads(included)
      rescue BadRequest => error # more paths or levels than a resource takes
        raise DeclarationError, error.message
      end

      # Records that the relation loads by itself are there to be asked: they are not loaded once more.
      def check_preloads(included)
        loaded = Preloading.of(@source.scope)
        return if loaded.empty?

        raise DeclarationError, "the relation loads what its records lead to" if @translation.opaque?

        again = included.find { |node| translation(node).opaque? && loaded.dig(*node.path.split(".").map(&:to_sym)) } or return
        raise DeclarationError, "the relation loads #{again.path} by itself"
      end

      def check_records(included)
        raise DeclarationError, "its records are there already" if included.any? { |node| translation(node).opaque? }

        ids = @source.scope.to_a.map { |record| record.public_send(@translation.id_column) }
        raise DeclarationError, "some of its records have the same id" unless ids.uniq.size == ids.size
        return if StoredRecords.linked?(@source.scope.to_a, @arrangement, @translation, @tree)

        raise DeclarationError, "its records hold others that are not stored as they are"
      end

      def request
        @request ||= Plan::Request.new(definition, include: @tree, fields: fields)
      end

      # Of the types whose fields were chosen, and of those with relationships whose linkage is not wanted.
      def fields
        @reached.each_key.with_object({}) do |translation, fields|
          names = names_of(translation)
          (fields[translation.serializer.record_type.to_s] ||= []).concat(names) if names
        end
      end

      # What is included of each type. A lazy relationship that is so at one place and not at another, and two serializers of one
      # type, are more than a plan can say.
      def reached(translation, tree, found)
        before = found[translation]
        refuse(translation, "is reached with and without its lazy relationships") if before && lazy?(translation, before ^ tree.keys)
        refuse(translation, "is not the only serializer of its type") if !before && found.any? { |other, _| same_type?(other, translation) }

        found[translation] = (before || Set.new) | tree.keys
        tree.each { |relationship, below| reached(translation.association(relationship).target, below, found) }
        found
      end

      def refuse(translation, reason)
        raise DeclarationError, "#{translation.serializer.name} #{reason}"
      end

      def lazy?(translation, names)
        names.any? { |name| translation.serializer.relationships_to_serialize[name].lazy_load_data }
      end

      def same_type?(one, other)
        one.serializer.record_type == other.serializer.record_type
      end

      def names_of(translation)
        chosen = @options.fieldset(translation.serializer.record_type)
        return unless chosen || @arrangement.bare(translation).any?

        linked = @arrangement.linked(translation).map(&:name)
        return linked if translation.opaque?

        attributes = (translation.serializer.attributes_to_serialize || {}).keys
        (chosen ? attributes & chosen : attributes) + linked
      end

      def rows(scope)
        Document::DeclarationCheck.of(definition).fetch(plan, scope)
      end

      def layout
        @layout ||= @arrangement.layout(plan)
      end

      def pure
        Serialize.encoder.encode(rows(scope), layout, tail: tail).body
      end

      def of_records
        records = @source.records? ? @source.scope.to_a : @translation.load(@source.scope, fieldset)
        ids = records.map { |record| record.public_send(@translation.id_column) }
        refuse(@translation, "has an id that several records share") if records.uniq.size > ids.uniq.size

        mixed(rows(@source.records? ? @source.scope : chosen(ids)), records, ids)
      end

      def fieldset
        @options.fieldset(@translation.serializer.record_type)
      end

      # Without a relationship there is nothing to ask rows for.
      def chosen(ids)
        @translation.adapter.by_ids(all, plan.root.edges.any? ? ids.uniq : [], @translation.id_column)
      end

      def all
        @translation.model.respond_to?(:unscoped) ? @translation.model.unscoped : @translation.adapter.scope
      end

      # The bytes that the encoder wrote of each record, and in place of those of opaque types what their records tell.
      def mixed(row_set, records = nil, ids = nil)
        written = Serialize.encoder.encode_each(row_set, layout).to_h do |id, bytes, included|
          [id, [bytes, included.map { |one| one.first(2) }]]
        end
        objects = OpaqueObjects.new(plan, row_set, layout, @options, @reached)
        primary = records ? of_primary_records(written, objects, records, ids) : written.values
        included = primary.map { |bytes, found| [bytes, objects.replace(found)] }
        Serialize::Assembly.call(:json_api, included, compound: @options.tree.any?, tail: tail)
      end

      def of_primary_records(written, objects, records, ids)
        texts = objects.of(plan.root, records, ids.map(&:to_s))
        texts.each_with_index.map { |text, index| [text, written.fetch(ids[index].to_s, ["", []]).last] }
      end

      def tail
        around = { meta: @options.meta, links: @options.links }.reject { |_, value| Blank.blank?(value) }
        around.map { |name, value| ",\"#{name}\":#{JsonText.of(value)}" }.join
      end
    end
  end
end
