# frozen_string_literal: true

require "monitor"
require_relative "version"
require_relative "errors"
require_relative "nearest"
require_relative "bounded_cache"
# The name Resource leads to document.rb. Where that is being loaded for another reason, Ruby must not go there once more.
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
  # Declares what a type of resource is; everything else (what is read, written, cached, allowed) follows from it.
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
  # A resource inherits the declarations of its superclass. It is frozen when it is first used: a declaration after that is an
  # error. This file only declares; `require "castellan/document"` (or `require "castellan"`) adds {.document} and {.render}.
  class Resource
    class << self
      # Declares what the rows come from. Where a table holds several classes (single table inheritance), all its records are of this
      # resource's type; a resource of a subclass (`model Admin`) has the records of that class alone, and a relationship that leads
      # to several types names their resources.
      # @param source an ActiveRecord or Sequel model, a Sequel dataset, the name of a table or view of the one database that there is
      def model(source)
        Declaring.declare(self) { |declarations, _| declarations.model = source }
      end

      # @param name [Symbol, String] default: the model's plural name
      def type(name)
        Declaring.declare(self) { |declarations, _| declarations.type = name.to_s }
      end

      # @param columns [Array<Symbol>] default: the model's primary key; the values of several are joined by "_". An id is the text of
      #   what a record's reader answers: of an enum, a time, a decimal or a type of one's own records are loaded to ask them
      def id(*columns)
        Declaring.declare(self) { |declarations, location| declarations.identify(columns.flatten, location: location) }
      end

      # Declares attributes that are columns of the model's table.
      # @param names [Array<Symbol>]
      # @param options [Hash] see {.attribute}
      def attributes(*names, **options)
        names.each { |name| attribute(name, **options) }
      end

      # Declares one attribute; see {Attribute} for the ways.
      # @param from [String, Hash, nil] a path of to-one associations with a column at its end: "employee.id", { employee: :id }
      # @param columns [Array<Symbol>, nil] what a computed attribute's block reads
      # @param preloads [Symbol, Array, nil] associations that a block of the record walks: loaded for all records at once
      # @param if [Proc, nil] whether it is written: a block of the viewer, or of the row and the viewer
      # @param if_columns [Array<Symbol>, nil] what that block reads of the row; without them a block of two gets the record
      # @param pure [Boolean] see {.pure}, of this attribute's blocks and of the model's reader
      # @param as_stored [Boolean] whether a column is written as it is in the table, whatever methods and callbacks the model has
      # @yieldparam row what has the named columns; the record, when no columns are named
      # @yieldparam viewer [Object, nil] where the block takes two arguments
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
      # @param value [String, Hash, nil] a text with columns in braces ("/users/{id}"), or a link that is always the same
      # @param columns [Array<Symbol>, nil] what the block reads; without them it gets the record
      # @param pure [Boolean] see {.pure}, of this block
      # @yieldparam row
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      # @yieldreturn [String, Hash, nil]
      def link(name, value = nil, columns: nil, pure: false, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("link #{name.inspect}: write a text or a block, not both", location) if value.nil? == block.nil?

          declarations.links[name.to_sym] = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares the meta object of each resource object.
      # @param value [Hash, nil] one that is always the same; its pairs may stand alone: `meta version: 1`
      # @param columns [Array<Symbol>, nil] what the block reads; without them it gets the record
      # @param pure [Boolean] see {.pure}, of this block
      # @yieldparam row
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      # @yieldreturn [Hash]
      def meta(value = nil, columns: nil, pure: false, **pairs, &block)
        value ||= pairs unless pairs.empty?
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("meta: write a Hash or a block, not both", location) if value.nil? == block.nil?

          declarations.meta = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares an attribute that differs from viewer to viewer. The block gets the ids of the records of one document and the
      # viewer, and returns the ids for which it is true (or a Hash of id to value); it runs once a document. Cached bytes have
      # holes in its place, so that one cached document serves every viewer.
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

      # @param names [Array<Symbol>] associations of the model
      # @param resource [Class, String, Array, Hash, nil] default: `<Singular>Resource` in the same namespace or one around it. Several
      #   where the records are of several types: `[PostResource, UserResource]`, each for its own model, or by model
      # @param links [Hash{Symbol => String, Proc}] of the relationship object, see {.link}
      # @param meta [Hash, Proc] of the relationship object, see {.meta}
      # @param if [Proc] see {.attribute}
      # @param columns [Array<Symbol>] what the blocks of links, meta and `if:` read of the row; without them they get the record
      # @param pure [Boolean] see {.pure}, of the blocks of links, meta and `if:`
      # @param from [Symbol, nil] the association, where its name is another: `has_many :images, from: :variant_images`
      # @param lazy [Boolean] whether linkage is written only where the records are included; without them the member is left out, unless
      #   it has links or meta
      # @param include [Boolean] whether clients may include the records; false: `?include=` of it is a 400
      # @yieldparam record whose related records the block returns, where no association does
      # @yieldparam viewer [Object, nil] where the block takes two arguments
      def has_many(*names, **options, &block)
        Declaring.relate(self, :has_many, names, block, **options)
      end

      # (see .has_many)
      def has_one(*names, **options, &block)
        Declaring.relate(self, :has_one, names, block, **options)
      end

      # (see .has_many)
      def belongs_to(*names, **options, &block)
        Declaring.relate(self, :belongs_to, names, block, **options)
      end

      # Names a subset of the members: `document(scope, representation: :summary)`.
      # @param only [Array<Symbol>] attributes and relationships
      def representation(name, only:)
        Declaring.declare(self) { |declarations, location| declarations.representation(name, only, location: location) }
      end

      # Allows a client to filter by `filter[name]=a,b`. The block gets the relation or dataset and the values (Strings), and
      # returns the narrowed relation or dataset. Where the resource declares a `scope`, the relation holds only what the viewer may see;
      # rows of other resources that the block reads are not narrowed: write `TagResource.visible_to(viewer)` for those.
      # @yieldparam relation
      # @yieldparam values [Array<String>]
      # @yieldparam viewer [Object, nil] where the block takes three arguments
      def filter(name, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("filter(#{name.inspect}) needs a block: { |scope, values| scope.where(…) }", location) unless block

          declarations.filters[name.to_s] = block
        end
      end

      # Allows a client to sort by these columns: `sort=-last_name,email`.
      # @param default [String, nil] the order when the client names none, e.g. "-number"
      def sort(*names, default: nil)
        Declaring.declare(self) { |declarations, location| declarations.sort(names, default: default, location: location) }
      end

      # Divides collections into pages: `page[number]=2&page[size]=20`.
      # @param size [Integer] when the client names none
      # @param max_size [Integer] the most that a client may ask for
      # @param count [Boolean, String] write the total number into `meta`, under this name ("total" for true)
      def page(size:, max_size: size, count: false)
        Declaring.declare(self) { |declarations, location| declarations.page(size, max_size, count, location: location) }
      end

      # Keeps what was written in the configured store.
      # @param kind [:exact] bytes are served only while nothing they were made of has changed
      # @param expires_in [Numeric, nil] seconds
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

      # @param name [:json_api, :nested] JSON:API 1.1, or plain JSON as `to_json(include: …)` gives
      def format(name)
        Declaring.declare(self) { |declarations, location| declarations.format(name, location: location) }
      end

      # @param name [:none, :dash, :camel, :camel_lower, :underscore] how names become members
      def key_transform(name)
        Declaring.declare(self) { |declarations, location| declarations.key_transform(name, location: location) }
      end

      # @return [Definition] frozen; made once
      # @raise [DeclarationError]
      def definition
        @definition || DEFINING.synchronize { @definition ||= Definition.new(self, declarations).tap { declarations.freeze } }
      end

      # @return [Declarations] what was declared here, beginning with what the superclass declared
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
