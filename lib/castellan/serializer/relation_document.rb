# frozen_string_literal: true

require "set"
require_relative "source"
require_relative "translation"
require_relative "association_tree"
require_relative "layout"
require_relative "arrangement"

module Castellan
  module Serializer
    # The document of a relation or dataset, by way of the resources that stand for the serializers (see {Translation}).
    #
    #   document = RelationDocument.new(UserSerializer, Source.of(User.active), Options.new(UserSerializer, include: [:roles]))
    #   document.rows?      # => true, unless something is asked for that no resource can declare
    #   document.refusal    # => nil, or what that is
    #   document.to_json
    class RelationDocument
      # @param source [Source]
      # @param options [Options]
      # @return [Array] the records of a relation, with the associations that their serializers read
      def self.records(serializer, source, options)
        AssociationTree.load(source.scope, Translation.of(serializer, source.model), options)
      rescue DeclarationError
        Preloading.records(source.scope, [])
      end

      # @return [String, nil] why the document is written from records as a whole
      attr_reader :refusal

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

      # @return [String] the document's bytes
      def to_json(*)
        scope = adapter.scope(@source.scope.dup) # the caller's own stays unread
        rows = adapter.fetch(plan, scope, viewer: @options.params)
        Serialize.encoder.encode(rows, @arrangement.layout(plan), tail: tail).body
      end

      # @return [Array<Array(Plan::Node, Translation)>] for {Explanation}
      def parts
        plan.nodes.map { |node| [node, translation(node)] }
      end

      private

      def plan
        @plan ||= begin
          request = Plan::Request.new(definition, include: @tree, fields: fields)
          @arrangement.plan(Plan.compile(definition, request))
        end
      end

      def definition
        @translation.resource.definition
      end

      def adapter
        Document::DeclarationCheck.of(definition)
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
      # and for records that it has written, by the type that the relationship names.
      def obstacle(relationship, target)
        type = target.serializer.record_type
        return "it leads to #{type} again, which only records show as they should be" if type == @translation.serializer.record_type

        "its linkage has another type than its records" unless relationship.static_record_type == type
      end

      # Everything that could be refused is refused before anything is read.
      def check
        @reached.each_key { |translation| check_type(translation) }
        [definition, *plan.nodes.map(&:definition)].uniq.each { |one| Document::DeclarationCheck.of(one) }
        check_preloads(plan.nodes.drop(1))
      rescue BadRequest => error # more paths or levels than a resource takes
        raise DeclarationError, error.message
      end

      def check_type(translation)
        refuse(translation, "cannot be a resource: #{translation.obstacle}") if translation.obstacle

        chosen(translation, translation.serializer.attributes_to_serialize).each do |attribute|
          reason = MemberTranslation.obstacle(attribute)
          refuse(translation, "writes #{attribute.key}, and #{reason}") if reason
        end
        @arrangement.written(translation).each do |relationship|
          reason = translation.association(relationship.name).reason
          refuse(translation, "writes #{relationship.name}, and #{reason}") if reason
        end
      end

      def chosen(translation, members)
        fieldset = @options.fieldset(translation.serializer.record_type)
        fieldset ? (members || {}).slice(*fieldset).values : (members || {}).values
      end

      # Records that the relation loads by itself are there to be read: they are not loaded once more.
      def check_preloads(included)
        loaded = Preloading.of(@source.scope)
        return if loaded.empty?

        raise DeclarationError, "the relation loads what its records lead to" if @translation.opaque?

        again = included.find { |node| translation(node).opaque? && loaded.dig(*node.path.split(".").map(&:to_sym)) } or return
        raise DeclarationError, "the relation loads #{again.path} by itself"
      end

      # Of the types whose fields were chosen, and of those with relationships whose linkage is not wanted.
      def fields
        @reached.each_key.with_object({}) do |translation, fields|
          attributes = chosen(translation, translation.serializer.attributes_to_serialize).map(&:key)
          names = attributes + @arrangement.written(translation).map(&:name)
          (fields[translation.serializer.record_type.to_s] ||= []).concat(names)
        end
      end

      # What is included of each type. A lazy relationship that is so at one place and not at another, and two serializers of one
      # type, are more than a plan can express.
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

      def tail
        around = { meta: @options.meta, links: @options.links }.reject { |_, value| Blank.blank?(value) }
        around.map { |name, value| ",\"#{name}\":#{JsonText.of(value)}" }.join
      end
    end
  end
end
