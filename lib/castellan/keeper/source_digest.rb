# frozen_string_literal: true

require "digest/sha2"

module Castellan
  class Keeper
    # Digests the declarations of a resource and its related resources, for the cache key.
    #
    #   SourceDigest.of(UserResource.definition)   # => "5f1c…"; nil if one of the classes is anonymous
    #
    # Covers names, members with file and line, and the text of those files; {Revision} covers the code that
    # blocks call. Anonymous classes have no digest, because other processes cannot identify them.
    module SourceDigest
      module_function

      # @return [String, nil]
      def of(definition)
        found = definition.derive(:source_digest) { named?(definition) ? digest(definition.reachable) : "" }
        found unless found.empty?
      end

      def named?(definition)
        definition.reachable.all? { |reached| reached.resource.name }
      end

      def digest(definitions)
        members = definitions.flat_map { |definition| definition.attributes.values + definition.relationships.values }
        digest = Digest::SHA256.new
        definitions.each { |definition| digest << [definition.name, definition.type, definition.id_column, definition.paging.to_a].inspect }
        members.each { |member| digest << [member.name, member.key, member.location].inspect }
        paths(members, definitions).each { |path| digest << File.binread(path) if File.file?(path) }
        digest.hexdigest[0, 16]
      end

      # Links and meta objects may be declared in a different file, such as that of the superclass.
      def paths(members, definitions)
        around = definitions.flat_map { |definition| [*definition.links.values, definition.meta] }
        [*members, *around].filter_map { |written| written&.location&.slice(/\A(.+):\d+\z/, 1) }.uniq
      end
      private_class_method :named?, :digest, :paths
    end
  end
end
