# frozen_string_literal: true

module Castellan
  module Plan
    # Lists the members to write for each type (JSON:API 1.1, "Sparse Fieldsets").
    #
    #   fields = Fields.parse(definition, { "users" => "email,roles" })
    #   fields.of(definition)   # => [:email, :roles], in the order of the declaration
    #
    # By default all members of a type are written. A representation limits the members of the resource's own
    # type. Names are looked up in the declarations, so the number of shapes is finite.
    class Fields
      # In bytes; longer lists raise BadRequest.
      MAX_BYTESIZE = 5_000
      TITLE = "Invalid sparse fieldset"
      NOTHING = {}.freeze
      private_constant :TITLE, :NOTHING

      # @param asked [Hash, nil] type => "a,b" or [:a, :b]
      # @param only [Array<Symbol>, nil] the members of a representation
      # @return [Fields]
      # @raise [BadRequest]
      def self.parse(definition, asked, only: nil) = new(definition, asked, only)

      def initialize(definition, asked, only)
        @definition = definition
        @only = only
        @hidden = NOTHING
        @own_types = definition.written_as.map(&:type)
        @by_type = only ? @own_types.to_h { |type| [type, only] } : {}
        pairs(asked).each { |type, names| @by_type[type.to_s] = select(type.to_s, names) }
        @by_type.freeze
        freeze
      end

      # @return [Array<Symbol>] declared names in the order of the declaration
      def of(definition)
        chosen = @by_type[definition.type]
        members = chosen ? definition.members & chosen : definition.members
        @hidden.key?(definition) ? members - @hidden[definition] : members
      end

      # @return [Boolean] whether an `if:` hides the member from the viewer
      def hidden?(definition, name) = @hidden.key?(definition) && @hidden[definition].include?(name)

      # @return [Boolean] whether any members are left out
      def sparse? = !@by_type.empty? || !@hidden.empty?

      # @param hidden [Hash{Resource::Definition => Array<Symbol>}] members that the viewer may not see
      # @return [Fields]
      def without(hidden) = dup.tap { |fields| fields.send(:hide, hidden) }.freeze

      private

      def hide(hidden)
        @hidden = hidden.freeze
      end

      def pairs(asked)
        return asked || {} if asked.nil? || asked.is_a?(Hash)

        refuse("fields", "fields must name a type: write fields[#{@definition.written_as.first.type}]=…")
      end

      def select(type, names)
        definitions = @definition.reachable.select { |definition| definition.type == type }
        shown = Parameter.shown(type)
        parameter = "fields[#{shown}]"
        if definitions.empty?
          refuse(parameter, "#{shown.inspect} is not a type of this document#{Nearest.hint(shown, @definition.reachable.map(&:type).uniq)}")
        end
        refuse(parameter, "#{parameter} is longer than #{MAX_BYTESIZE} bytes") if names.is_a?(String) && names.bytesize > MAX_BYTESIZE

        Parameter.list(parameter, names, title: TITLE).flat_map { |name| members(parameter, definitions, name) }
      end

      # Several resources may have the same type; each writes the listed members that it has.
      def members(parameter, definitions, name)
        found = definitions.filter_map do |definition|
          definition.member_named(name) || definition.members.find { |declared| declared.name == name }
        end
        found &= @only if cut?(definitions)
        return found unless found.empty?

        refuse(parameter, "#{Parameter.shown(name).inspect} is not a member of #{definitions.first.type}" \
                          "#{Nearest.hint(Parameter.shown(name), member_names(definitions))}")
      end

      # Omits members that some viewers may not see.
      def member_names(definitions)
        definitions.flat_map { |one|
          names = one.members - one.conditional_names
          names &= @only if cut?(definitions)
          [*one.attributes.values_at(*names), *one.relationships.values_at(*names)].compact.map(&:key)
        }.uniq
      end

      def cut?(definitions) = @only && @own_types.include?(definitions.first.type)
      def refuse(parameter, detail) = Parameter.refuse(parameter, detail, title: TITLE)
    end
  end
end
