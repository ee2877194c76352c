# frozen_string_literal: true

require "digest"

module Castellan
  class Keeper
    # A digest of what declares a resource and those it leads to, so that bytes written by another declaration are never served.
    #
    #   SourceDigest.of(UserResource.definition)   # => "5f1c…", nil when one of the resources has no name
    #
    # It is made of the names, the members with their file and line, and the text of those files; not of the code that their blocks
    # call: that is what a keeper's `revision` is for. A class without a name cannot be told from its like in another process.
    module SourceDigest
      module_function

      # @param definition [Resource::Definition]
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

      # A link or meta object may be written in another file than the members: in a superclass, most often.
      def paths(members, definitions)
        around = definitions.flat_map { |definition| [*definition.links.values, definition.meta] }
        [*members, *around].filter_map { |written| written&.location&.slice(/\A(.+):\d+\z/, 1) }.uniq
      end
      private_class_method :named?, :digest, :paths
    end
  end
end
