# frozen_string_literal: true

require "monitor"
require_relative "version"
require_relative "errors"
require_relative "nearest"
require_relative "bounded_cache"
# Resource is autoloaded from document.rb. While that file loads, the autoload must not start again.
Castellan.send(:remove_const, :Resource) if Castellan.constants(false).include?(:Resource)
require_relative "resource/computed"
require_relative "resource/condition"
require_relative "resource/attribute"
require_relative "resource/relationship"
require_relative "resource/resource_name"
require_relative "resource/key_transform"
require_relative "resource/declarations"
require_relative "resource/declaring"
require_relative "resource/definition"

module Castellan
  # Declares a type of resource: what is read and written, what clients may ask for, who may see which rows.
  #
  #   class UserResource < Castellan::Resource
  #     model User
  #     attributes :email, :last_name
  #     attribute :employee_id, from: "employee.id"
  #     attribute(:full_name, columns: %i[first_name last_name]) { |row| "#{row.first_name} #{row.last_name}" }
  #     has_many :roles, :groups
  #     filter(:role) { |users, titles| users.where(id: Assignment.joins(:role).where(role: { title: titles }).select(:user_id)) }
  #     sort :last_name
  #     page size: 50, max_size: 200
  #   end
  #
  # A resource inherits the declarations of its superclass, and is frozen when it is first used. `require "castellan/document"` (or
  # `require "castellan"`) adds {.document} and {.render}.
  class Resource
    class << self
      # Declares where the rows come from. With single table inheritance, a resource of the base class has the records of all classes,
      # and one of a subclass (`model Admin`) those of that class alone.
      # @param source [Class, Object, Symbol, String] an ActiveRecord or Sequel model, a Sequel dataset, or the name of a table or view of
      #   the application's one database
      # @raise [DeclarationError] at boot, when it cannot be read as rows
      def model(source)
        Declaring.declare(self) { |declarations, _| declarations.model = source }
      end

      # Declares the JSON:API type.
      # @param name [Symbol, String] default: the model's plural name
      def type(name)
        Declaring.declare(self) { |declarations, _| declarations.type = name.to_s }
      end

      # Declares the id: the text that a record's reader returns. Enums, times, decimals and types of the application are therefore read
      # from records.
      # @param columns [Array<Symbol>] default: the primary key; the values of several are joined by "_"
      # @raise [DeclarationError] at boot, when a column does not exist, or when there is neither `id` nor a primary key
      def id(*columns)
        Declaring.declare(self) { |declarations, location| declarations.identify(columns.flatten, location: location) }
      end

      # Declares attributes that are columns of the model's table.
      # @param names [Array<Symbol>]
      # @param options [Hash] see {.attribute}
      def attributes(*names, **options)
        names.each { |name| attribute(name, **options) }
      end

      # Declares an attribute; {Attribute} lists the ways.
      # @param from [String, Hash, nil] a path of to-one associations with a column at its end: "employee.id", { employee: :id }
      # @param columns [Array<Symbol>, nil] the columns that the block reads
      # @param preloads [Symbol, Array, Hash, nil] associations that a block of the record walks; loaded for all records at once
      # @param if [Proc, nil] decides whether the attribute is written: a block of the viewer, or of the row and the viewer
      # @param if_columns [Array<Symbol>, nil] the columns that this block reads; without them a block of two gets the record
      # @param pure [Boolean] see {.pure}, of this attribute's blocks and of the model's reader
      # @param as_stored [Boolean] whether a column is written as it is in the table, whatever methods and callbacks the model has
      # @yieldparam row [#[], Object] has the named columns; the record, when no columns are named
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      # @yieldreturn [Object] the value, written as the ORM's JSON has it
      # @raise [DeclarationError] for options that exclude each other; at boot, for a column or association that does not exist
      def attribute(name, from: nil, columns: nil, preloads: nil, if: nil, if_columns: nil, pure: false, as_stored: false,
                    &block)
        shown = binding.local_variable_get(:if)
        Declaring.declare(self) do |declarations, location|
          condition = Condition.of(shown, columns: if_columns, pure: pure, location: location)
          declarations.attribute(name, from: from, columns: columns, preloads: preloads, condition: condition, block: block,
                                       pure: pure, as_stored: as_stored, location: location)
        end
      end

      # Declares a link of each resource object (JSON:API 1.1, "Resource Links").
      # @param name [Symbol]
      # @param value [String, Hash, nil] a text with columns in braces ("/users/{id}"), or a constant link
      # @param columns [Array<Symbol>, nil] the columns that the block reads; without them it gets the record
      # @param pure [Boolean] see {.pure}, of this block
      # @yieldparam row
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      # @yieldreturn [String, Hash, nil]
      # @raise [DeclarationError] without a text or block, or with both
      def link(name, value = nil, columns: nil, pure: false, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("link #{name.inspect}: write a text or a block, not both", location) if value.nil? == block.nil?

          declarations.links[name.to_sym] = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares the meta object of each resource object.
      # @param value [Hash, nil] a constant; braces may be left out: `meta version: 1`
      # @param columns [Array<Symbol>, nil] the columns that the block reads; without them it gets the record
      # @param pure [Boolean] see {.pure}, of this block
      # @yieldparam row
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      # @yieldreturn [Hash, nil]
      # @raise [DeclarationError] without a Hash or block, or with both
      def meta(value = nil, columns: nil, pure: false, **pairs, &block)
        value ||= pairs unless pairs.empty?
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("meta: write a Hash or a block, not both", location) if value.nil? == block.nil?

          declarations.meta = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares an attribute that differs for each viewer. The block runs once per document. Kept documents have placeholders in its
      # place, so one kept document serves all viewers.
      # @yieldparam ids [Array<Integer, String>] of the records of this type in the document
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Array, Hash] the ids for which it is true, or a Hash of id to value
      # @raise [DeclarationError] without a block
      def per_viewer(name, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("per_viewer(#{name.inspect}) needs a block: { |ids, viewer| ids that are true }", location) unless block

          declarations.attribute(name, viewer: true, block: block, location: location)
        end
      end

      # Declares which rows a viewer may see. It holds wherever rows of this resource are read: collections, single records, includes,
      # linkage, `from:` paths, counts, streams and records that were given. Every query of a document is narrowed in SQL.
      #
      #   scope { |tasks, viewer| viewer ? tasks.where(team_id: viewer.team_ids) : tasks.none }
      #
      # The block is called once per document; it returns its first argument to hide nothing.
      # @yieldparam relation the model's relation or dataset (`Task.all`, default scope included)
      # @yieldparam viewer [Object, nil] nil where no viewer is given
      # @yieldreturn a relation or dataset of the model; anything else is a {DeclarationError} when a document is made
      def scope(&block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("scope needs a block: { |relation, viewer| relation.where(…) }", location) unless block

          declarations.scope = Declarations::Scope.new(block, location).freeze
        end
      end

      # Declares how many levels of `include` a client may ask for, from this resource on: `?include=author.team` has two. Code of the
      # application may include more: `document(scope, include: { author: { team: :company } })`; a String is a client's.
      # @param levels [Integer] from 1 to 10; 3 where nothing is declared
      def include_depth(levels)
        Declaring.declare(self) { |declarations, location| declarations.allow_depth(levels, location: location) }
      end

      # Declares relationships to many records.
      # @param names [Array<Symbol>] associations of the model
      # @param resource [Class, String, Array, Hash, nil] default: `<Singular>Resource` in the same namespace or one around it. A
      #   polymorphic association names several: `[PostResource, UserResource]`, each for its own model, or a Hash by model
      # @param links [Hash{Symbol => String, Proc}] of the relationship object, see {.link}
      # @param meta [Hash, Proc] of the relationship object, see {.meta}
      # @param if [Proc] see {.attribute}
      # @param columns [Array<Symbol>] the columns that the blocks of links, meta and `if:` read; without them they get the record
      # @param pure [Boolean] see {.pure}, of the blocks of links, meta and `if:`
      # @param from [Symbol, nil] the association, where it has another name: `has_many :images, from: :variant_images`
      # @param lazy [Boolean] whether linkage is written only where the records are included; elsewhere the member has its links and meta,
      #   and is left out without them
      # @param include [Boolean] whether clients may include the records; false: `?include=` of it is a 400
      # @yieldparam record [Object] the block returns its related records, in place of an association
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      # @raise [DeclarationError] at boot, for an association or resource that does not exist
      def has_many(*names, **options, &block)
        Declaring.relate(self, :has_many, names, block, **options)
      end

      # Declares relationships to one record whose key is in the other table.
      # (see .has_many)
      def has_one(*names, **options, &block)
        Declaring.relate(self, :has_one, names, block, **options)
      end

      # Declares relationships to one record whose key is in this table.
      # (see .has_many)
      def belongs_to(*names, **options, &block)
        Declaring.relate(self, :belongs_to, names, block, **options)
      end

      # Names a subset of the members: `document(scope, representation: :summary)`.
      # @param name [Symbol]
      # @param only [Array<Symbol>] attributes and relationships
      # @raise [DeclarationError] for a member that is not declared
      def representation(name, only:)
        Declaring.declare(self) { |declarations, location| declarations.representation(name, only, location: location) }
      end

      # Allows clients to filter by `filter[name]=a,b`. Where the resource declares a `scope`, it holds for the result as well. Rows of
      # other resources that the block reads are not narrowed: write `TagResource.visible_to(viewer)` for those.
      # @param name [Symbol, String]
      # @yieldparam relation [Object] the relation or dataset
      # @yieldparam values [Array<String>]
      # @yieldparam viewer [Object, nil] where the block takes three arguments
      # @yieldreturn [Object] the narrowed relation or dataset
      # @raise [DeclarationError] without a block
      def filter(name, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("filter(#{name.inspect}) needs a block: { |scope, values| scope.where(…) }", location) unless block

          declarations.filters[name.to_s] = block
        end
      end

      # Allows clients to sort by these columns: `sort=-last_name,email`.
      # @param names [Array<Symbol>] columns, or attributes that are columns
      # @param default [String, nil] the order where the client gives none, e.g. "-number"
      # @raise [DeclarationError] for a default that cannot be sorted by; at boot, for a column that does not exist
      def sort(*names, default: nil)
        Declaring.declare(self) { |declarations, location| declarations.sort(names, default: default, location: location) }
      end

      # Divides collections into pages: `page[number]=2&page[size]=20`.
      # @param size [Integer] records per page, where the client gives none
      # @param max_size [Integer] the highest size that a client may ask for
      # @param count [Boolean, String] whether the total number is written into `meta`: as "total", or under this name
      # @raise [DeclarationError] unless 1 <= size <= max_size
      def page(size:, max_size: size, count: false)
        Declaring.declare(self) { |declarations, location| declarations.page(size, max_size, count, location: location) }
      end

      # Keeps documents in the configured store.
      # @param kind [:exact] a kept document is served only while no table that it was made of has changed
      # @param expires_in [Numeric, nil] seconds
      # @raise [DeclarationError] for another kind
      def cache(kind, expires_in: nil, layer: nil)
        Declaring.declare(self) { |declarations, location| declarations.cache(kind, expires_in, layer, location: location) }
      end

      # Declares that all Ruby code of this resource (blocks of attributes, links, meta and `if:`, readers of the model that a developer
      # wrote) returns the same for the same columns, locale and time zone. Only then `cache :exact` keeps documents that run such code.
      # A block that takes the viewer is no such code; see {.vary_on}.
      #
      #   pure                                                              # all of it
      #   attribute(:title, columns: [:name], pure: true) { |row| row.name.upcase }   # one of it
      # @param value [Boolean] false takes back what the superclass declared
      def pure(value = true) # rubocop:disable Style/OptionalBooleanParameter
        Declaring.declare(self) { |declarations, _| declarations.pure = value }
      end

      # Names what the Ruby code of this resource reads besides its columns. The values become part of the key under which a document
      # is kept, so that each combination of them has a document of its own. `I18n.locale` and `Time.zone` are always part of it.
      #
      #   vary_on { |viewer| [viewer&.role, Current.tenant.id] }
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Object] strings, symbols, numbers, booleans, nil, or arrays of them; anything else raises a ConfigurationError
      def vary_on(&block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("vary_on needs a block: { |viewer| [viewer&.role] }", location) unless block

          declarations.variation = block
        end
      end

      # Declares how documents are written.
      # @param name [:json_api, :nested] JSON:API 1.1, or plain JSON as `to_json(include: …)` writes it
      # @raise [DeclarationError] for another format
      def format(name)
        Declaring.declare(self) { |declarations, location| declarations.format(name, location: location) }
      end

      # Declares how declared names become names of members.
      # @param name [:none, :dash, :camel, :camel_lower, :underscore] default: :none
      # @raise [DeclarationError] for another transform, or where two members would have one name
      def key_transform(name)
        Declaring.declare(self) { |declarations, location| declarations.key_transform(name, location: location) }
      end

      # @return [Definition] frozen; made once
      # @raise [DeclarationError]
      def definition
        @definition || DEFINING.synchronize { @definition ||= Definition.new(self, declarations).tap { declarations.freeze } }
      end

      # @return [Declarations] those of the superclass and those of this class
      def declarations
        @declarations ||= self == Resource ? Declarations.new : superclass.declarations.copy
      end

      # @return [Array<Class>] every resource below this one
      def descendants
        subclasses.flat_map { |resource| [resource, *resource.descendants] }
      end

      DEFINING = Monitor.new
      private_constant :DEFINING
    end
  end
end
