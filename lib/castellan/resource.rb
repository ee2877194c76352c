# frozen_string_literal: true

require "monitor"
require_relative "version"
require_relative "errors"
require_relative "inflector"
require_relative "nearest"
require_relative "bounded_cache"
require_relative "resource/computed"
require_relative "resource/condition"
require_relative "resource/attribute"
require_relative "resource/column_path"
require_relative "resource/relationship"
require_relative "resource/resource_name"
require_relative "resource/key_transform"
require_relative "resource/writing"
require_relative "resource/declarations"
require_relative "resource/declaring"
require_relative "resource/definition"

module Castellan
  # Declares a JSON:API type: its model and members, what clients may query, and what a viewer may see.
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
  # A resource inherits the declarations of its superclass and is frozen on first use. {Document::OfResource}
  # adds `document` and `render`.
  class Resource
    class << self
      # Declares where the rows come from. With single table inheritance, a resource of the base class covers
      # all classes, and a resource of a subclass (`model Admin`) only this class.
      # @param source [Class, Object, Symbol, String] an ActiveRecord or Sequel model, a Sequel dataset, or
      #   the name of a table or view of the application's only database
      # @raise [DeclarationError] at boot, if rows cannot be read from the source
      def model(source)
        Declaring.declare(self) { |declarations, _| declarations.model = source }
      end

      # Declares the JSON:API type.
      # @param name [Symbol, String] by default the plural of the model's name
      def type(name)
        Declaring.declare(self) do |declarations, location|
          declarations.type = name.to_s
          declarations.locations[:type] = location
        end
      end

      # Declares that the rows of this resource are of several types, by single table inheritance.
      # Collections, related resources and linkage then represent each record by the resource of its class,
      # and leave out rows of other classes. Filters, sorts, pages and scope of this resource apply to all
      # types.
      #
      #   class VehicleResource < Castellan::Resource
      #     model Vehicle
      #     types "CarResource", "TruckResource"
      #     sort :name
      #   end
      #   class CarResource < VehicleResource
      #     model Car
      #     attributes :doors
      #   end
      #
      # Without a model, the types have several tables. The list can be filtered and sorted by what all types
      # declare:
      #
      #   class ActivityResource < Castellan::Resource
      #     types "IssueResource", "CommentResource"
      #     sort default: "-created_at"
      #     page :cursor, size: 20
      #   end
      # @param resources [Array<Class, String>] subclasses of this resource, each for another class of the
      #   model; without a model, any resources
      # @raise [DeclarationError] without a resource; at boot, if one is not a subclass, or if the model has
      #   no inheritance column
      def types(*resources)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("types: name the resources, such as types \"CarResource\", \"TruckResource\"", location) if resources.empty?

          declarations.types = resources.flatten.freeze
          declarations.locations[:types] = location
        end
      end

      # Declares the id. The record's own reader must return the same text, so enums, times, decimals and
      # custom types are read from records.
      # @param columns [Array<Symbol>] by default the primary key; several values are joined with "_"
      # @raise [DeclarationError] at boot, if a column does not exist, or if there is neither `id` nor a
      #   primary key
      def id(*columns)
        Declaring.declare(self) { |declarations, location| declarations.identify(columns.flatten, location: location) }
      end

      # Declares attributes that are columns of the model.
      # @param names [Array<Symbol>]
      # @param options [Hash] see {.attribute}
      def attributes(*names, **options)
        names.each { |name| attribute(name, **options) }
      end

      # Declares an attribute, see {Attribute}.
      # @param from [String, Hash, nil] a column at the end of to-one associations: "employee.id", { employee:
      #   :id }
      # @param columns [Array<Symbol>, nil] the columns that the block reads
      # @param preloads [Symbol, Array, Hash, nil] associations that a block with a record reads; preloaded
      #   for all records
      # @param if [Proc, nil] decides whether to write the attribute: a block with the viewer, or with the row
      #   and the viewer
      # @param if_columns [Array<Symbol>, nil] the columns that the `if:` block reads; without them, a block
      #   with two arguments gets the record
      # @param pure [Boolean, nil] see {.pure}; for the blocks of this attribute and the reader of the model
      # @param as_stored [Boolean] whether to write the column as stored, without the methods and callbacks of
      #   the model
      # @yieldparam row [#[], Object] a row with the given columns; without `columns:`, the record
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @yieldreturn [Object] the value, written as in the ORM's JSON
      # @raise [DeclarationError] for contradictory options; at boot, for an unknown column or association
      def attribute(name, from: nil, columns: nil, preloads: nil, if: nil, if_columns: nil, pure: nil, as_stored: false,
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
      # @param value [String, Hash, nil] a string with columns in braces ("/users/{id}"), or a constant link
      # @param columns [Array<Symbol>, nil] the columns that the block reads; without them, the block gets the
      #   record
      # @param pure [Boolean, nil] see {.pure}; for this block
      # @yieldparam row [#[], Object] a row or the record
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @yieldreturn [String, Hash, nil]
      # @raise [DeclarationError] without a string or block, or with both
      def link(name, value = nil, columns: nil, pure: nil, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("link #{name.inspect}: write a text or a block, not both", location) if value.nil? == block.nil?

          declarations.links[name.to_sym] = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares the links of a resource that {Castellan.app} serves: `self` of each resource object, and
      # `self` and `related` of each relationship. Does not replace links that you declare separately.
      #
      #   self_links "https://api.example.org/v1/posts"
      # @param at [String] the URL or path of the collection, as clients see it; by default "/" and the type
      # @raise [DeclarationError] if the id has several columns
      def self_links(at = nil)
        Declaring.declare(self) do |declarations, location|
          declarations.self_links = at ? at.chomp("/") : :type
          declarations.locations[:self_links] = location
        end
      end

      # Declares the meta object of each resource object.
      # @param value [Hash, nil] a constant; keywords work as well: `meta version: 1`
      # @param columns [Array<Symbol>, nil] the columns that the block reads; without them, the block gets the
      #   record
      # @param pure [Boolean, nil] see {.pure}; for this block
      # @yieldparam row [#[], Object] a row or the record
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @yieldreturn [Hash, nil]
      # @raise [DeclarationError] without a Hash or block, or with both
      def meta(value = nil, columns: nil, pure: nil, **pairs, &block)
        value ||= pairs unless pairs.empty?
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("meta: write a Hash or a block, not both", location) if value.nil? == block.nil?

          declarations.meta = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares an attribute that differs for each viewer. The block runs once per document. Cached documents
      # contain placeholders, so all viewers share a cached document.
      #
      #   per_viewer(:read, version: ->(viewer) { viewer.readings_changed_at }) { |ids, viewer| viewer.read_ids(ids) }
      #   per_viewer(:read, version: { readings: :user_id }) { |ids, viewer| viewer.read_ids(ids) }
      # @param version [#call, String, Symbol, Hash{Symbol => Symbol}, nil] a callable that receives the
      #   viewer and returns a value that changes whenever the viewer's values change; or the table of the
      #   values, alone or with the column of the viewer's id. With a version, conditional requests of a
      #   cached document do not run the block, and the values are cached. The viewer needs an `id`
      # @yieldparam ids [Array<Integer, String>] the ids of the records of this type in the document
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Array, Hash] the ids for which the attribute is true, or a Hash of values by id
      # @raise [DeclarationError] without a block
      def per_viewer(name, version: nil, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("per_viewer(#{name.inspect}) needs a block: { |ids, viewer| ids that are true }", location) unless block
          known = version.nil? || version.respond_to?(:call) || Declaring.table?(version)
          wanted = "must be callable with the viewer, or name a table: version: :readings or version: { readings: :user_id }"
          Declaring.refuse("per_viewer(#{name.inspect}): version: #{wanted}", location) unless known

          declarations.attribute(name, viewer: true, block: block, version: version, location: location)
        end
      end

      # Declares the rows that a viewer may see. Applies in SQL to all reads of this resource: collections,
      # single records, includes, linkage, `from:` paths, counts, streams and given records.
      #
      #   scope { |tasks, viewer| viewer ? tasks.where(team_id: viewer.team_ids) : tasks.none }
      #
      # The block runs once per document. To hide nothing, return the relation unchanged.
      # @yieldparam relation [Object] the model's relation or dataset (`Task.all`, with its default scope)
      # @yieldparam viewer [Object, nil] nil without a viewer
      # @yieldreturn [Object] a relation or dataset of the model; anything else raises {DeclarationError} when
      #   a document is created
      def scope(&block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("scope needs a block: { |relation, viewer| relation.where(…) }", location) unless block

          declarations.scope = Declarations::Scope.new(block, location).freeze
        end
      end

      # Allows clients to write attributes and relationships through `Castellan.app`. By default nothing is
      # writable.
      #
      #   writable :title, :body, :author
      #   writable :slug, on: :create
      #   writable(:state) { |viewer| viewer&.editor? }
      #   writable :id                                   # clients may choose the id of a new record
      # @param names [Array<Symbol>] attributes, relationships, `:id`, or a writer of the model that is not an
      #   attribute (`:password`)
      # @param on [Symbol, Array<Symbol>] `:create`, `:update` or both (default)
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Boolean] whether this viewer may write them; without a block every viewer may
      # @raise [DeclarationError] for another `on:`; at boot, if the model has no such writer
      def writable(*names, on: Writing::ACTIONS, &block)
        Declaring.declare(self) do |declarations, location|
          wrong = (Array(on) - Writing::ACTIONS).first
          Declaring.refuse("writable: on: is :create, :update or both, got #{wrong.inspect}", location) if wrong

          declarations.writing = declarations.writing.with_names(names.map(&:to_sym).freeze, Array(on).freeze, block)
          declarations.locations[:writable] = location
        end
      end

      # Allows clients to delete records through `Castellan.app`. By default no record can be deleted.
      # @yieldparam viewer [Object, nil]
      # @yieldparam record [Object]
      # @yieldreturn [Boolean] whether this viewer may delete the record; without a block every viewer may
      def deletable(&block)
        Declaring.declare(self) do |declarations, _|
          declarations.writing = declarations.writing.with(deletable: block || ->(_viewer, _record) { true })
        end
      end

      # Requires `If-Match` when a client changes or deletes a record: the status is 428 without it, and 412
      # with the ETag of an earlier document (RFC 9110, section 13.1.1; RFC 6585, section 3). By default the
      # header is optional.
      def require_if_match
        Declaring.declare(self) { |declarations, _| declarations.writing = declarations.writing.with(conditional: true) }
      end

      # Decides whether a viewer may create, update or delete a record; otherwise the status is 403. All
      # policies for an action must agree.
      #
      #   authorize(:update, :delete) { |viewer, post| post.author_id == viewer.id }
      #   authorize(:create) { |viewer, _, attributes| attributes[:blog].nil? || attributes[:blog].writers.include?(viewer) }
      #   authorize Castellan::Write::PunditAuthorizer
      # @param actions [Array<Symbol>] `:create`, `:update`, `:delete`; by default all. Instead of a block,
      #   the last argument may be an authorizer, which is called with the action, the viewer and the record
      #   ({Write::PunditAuthorizer})
      # @yieldparam viewer [Object, nil]
      # @yieldparam record [Object, nil] the record before the change; nil for `:create`
      # @yieldparam attributes [Hash{Symbol => Object}] the attributes and associations of the model to write
      # @yieldreturn [Boolean]
      # @raise [DeclarationError] without a block, or for another action
      def authorize(*actions, &block)
        *actions, authorizer = actions if actions.last.respond_to?(:call)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("authorize needs a block: { |viewer, record, attributes| … }", location) unless block || authorizer
          wrong = (actions - Writing::ALL).first
          Declaring.refuse("authorize #{wrong.inspect}: write :create, :update or :delete", location) if wrong

          declarations.writing = declarations.writing.with_policy(actions.empty? ? Writing::ALL : actions, block, authorizer)
        end
      end

      # Limits the depth of `include` from this resource: `?include=author.team` has depth 2. The limit
      # applies to Strings, because they come from clients; the application may include more with a Hash:
      # `document(scope, include: { author: { team: :company } })`.
      # @param levels [Integer] 1 to 10; by default 3
      def include_depth(levels)
        Declaring.declare(self) { |declarations, location| declarations.allow_depth(levels, location: location) }
      end

      # Declares to-many relationships.
      # @param names [Array<Symbol>] associations of the model
      # @param resource [Class, String, Array, Hash, nil] by default `<Singular>Resource` in the same or an
      #   outer namespace. For a polymorphic association an Array, `[PostResource, UserResource]`, or a Hash
      #   by model
      # @param links [Hash{Symbol => String, Proc}] links of the relationship object, see {.link}
      # @param meta [Hash, Proc] meta of the relationship object, see {.meta}
      # @param if [Proc] see {.attribute}
      # @param columns [Array<Symbol>] the columns that the blocks of links, meta and `if:` read; without
      #   them, the blocks get the record
      # @param pure [Boolean, nil] see {.pure}; for the blocks of links, meta and `if:`
      # @param from [Symbol, nil] the association, if it has another name:
      #   `has_many :images, from: :variant_images`
      # @param lazy [Boolean] whether to write linkage only if the records are included; otherwise the member
      #   has only its links and meta, or is omitted if it has none
      # @param include [Boolean] whether clients may include the records; if false, `?include=` of it gives a
      #   400
      # @yieldparam record [Object] the block returns the related records, instead of an association
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @raise [DeclarationError] at boot, for an unknown association or resource
      def has_many(*names, **options, &block)
        Declaring.relate(self, :has_many, names, block, **options)
      end

      # Declares to-one relationships whose foreign key is in the other table.
      # (see .has_many)
      def has_one(*names, **options, &block)
        Declaring.relate(self, :has_one, names, block, **options)
      end

      # Declares to-one relationships whose foreign key is in this table.
      # (see .has_many)
      def belongs_to(*names, **options, &block)
        Declaring.relate(self, :belongs_to, names, block, **options)
      end

      # Gives a subset of the members a name: `document(scope, representation: :summary)`.
      # @param name [Symbol]
      # @param only [Array<Symbol>] attributes and relationships
      # @raise [DeclarationError] for an undeclared member
      def representation(name, only:)
        Declaring.declare(self) { |declarations, location| declarations.representation(name, only, location: location) }
      end

      # Allows clients to filter. Without a block, the names are columns, and values are compared by the
      # column's type: `filter[status]=open,held`, `filter[created_at][gte]=2026-01-31`. {Plan::Comparisons}
      # has the operators.
      #
      #   filter :status, :created_at
      #   filter :company, from: "company.name"
      #   filter(:tag) { |posts, names| posts.where(id: Tag.where(name: names).select(:post_id)) }   # filter[tag]=a,b
      #
      # The `scope` of this resource applies to the result. Rows of other resources that a block reads are not
      # restricted; use `TagResource.visible_to(viewer)` for them.
      # @param names [Array<Symbol, String>] columns, or attributes that are columns or have `from:`; with a
      #   block only one name
      # @param from [String, Hash, nil] a column at the end of to-one associations, see {.attribute}
      # @param reveals [Boolean] whether clients may filter by a column that an `if:` with the row hides in
      #   some rows. The filter reveals the hidden values, so without `reveals: true` it gives a 400
      # @yieldparam relation [Object] the relation or dataset
      # @yieldparam values [Array<String>]
      # @yieldparam viewer [Object, nil] if the block takes three arguments
      # @yieldreturn [Object] the filtered relation or dataset
      # @raise [DeclarationError] for several names with a block or `from:`; at boot, for an unknown column,
      #   or for a column whose type cannot be compared
      def filter(*names, from: nil, reveals: false, &block)
        Declaring.declare(self) { |declarations, location| declarations.filter(names, from, block, reveals, location: location) }
      end

      # Allows clients to sort: `sort=-last_name,email`. Rows with equal values are sorted by the primary key.
      #
      #   sort :last_name, default: "last_name"
      #   sort :company, from: "company.name"
      # @param names [Array<Symbol>] columns, or attributes that are columns or have `from:`
      # @param from [String, Hash, nil] a column at the end of to-one associations, see {.attribute}
      # @param default [String, nil] the order if the client does not sort, e.g. "-number"
      # @param reveals [Boolean] see {.filter}; the order reveals hidden values, too
      # @raise [DeclarationError] if the default is not sortable, or for several names with `from:`; at boot,
      #   for an unknown column
      def sort(*names, from: nil, default: nil, reveals: false)
        Declaring.declare(self) do |declarations, location|
          declarations.sort(names, from: from, default: default, reveals: reveals, location: location)
        end
      end

      # Paginates collections by number, `page[number]=2&page[size]=20`, or by the Cursor Pagination profile:
      # `page[after]=…&page[size]=20`, where the links of each page contain the cursors.
      #
      #   page size: 20, max_size: 100, count: true
      #   page :cursor, size: 20, max_size: 100
      # @param kind [Symbol] :number or :cursor
      # @param size [Integer] the default page size
      # @param max_size [Integer] the largest page size that clients may request
      # @param count [Boolean, String] whether to write the total number into `meta`, as "total" or under this
      #   name
      # @param cursors [Boolean] whether to write the cursor of each item into its `meta.page.cursor`, for
      #   `page[after]`
      # @raise [DeclarationError] unless 1 <= size <= max_size, or for another kind
      def page(kind = :number, size:, max_size: size, count: false, cursors: false)
        Declaring.declare(self) { |declarations, location| declarations.page(kind, size, max_size, count, cursors, location: location) }
      end

      # Caches the documents of this resource in the configured store.
      #
      #   cache :exact, expires_in: 12.hours
      #   cache :exact, stale_while_revalidate: 5, stale_if_error: 60   # may serve the previous version of a document
      # @param kind [Symbol] :exact serves a cached document only while none of its tables has changed.
      #   :notified serves it until the process is notified of the change, some milliseconds later, and sends
      #   no query ({Versions::NotifiedVersions})
      # @param by [Symbol, String, Array] columns whose changes `castellan_versions by:` counts separately. A
      #   document whose scope has a single value for such a column (the id of a tenant), or a document of one
      #   record by its id, then stays cached when other rows of its table change; the first column in the
      #   scope is used
      # @param expires_in [Numeric, nil] seconds
      # @param stale_while_revalidate [Numeric, nil] the seconds for which a document that expired, or whose
      #   tables changed, is still served while one request renders it again
      # @param stale_if_error [Numeric, nil] the seconds for which it is served if rendering raises
      # @raise [DeclarationError] for another kind
      def cache(kind, expires_in: nil, stale_while_revalidate: nil, stale_if_error: nil, by: nil, layer: nil)
        Declaring.declare(self) do |declarations, location|
          declarations.cache(kind, location: location, layer: layer, by: by, expires_in: expires_in,
                                   stale_while_revalidate: stale_while_revalidate, stale_if_error: stale_if_error)
        end
      end

      # Declares how long browsers, proxies and CDNs may use a document of {Castellan.app} without
      # revalidation. By default they must revalidate it each time ("no-cache"). A document for an
      # authenticated viewer, or with per-viewer attributes, is "private"; `s_maxage` and `cdn` do not apply
      # to it.
      #
      #   cache_control s_maxage: 600, stale_while_revalidate: 30, stale_if_error: 86_400   # proxies that {Purge} empties
      #   cache_control max_age: 60, cdn: { max_age: 3600 }
      # @param directives [Hash] `max_age:`, `s_maxage:`, `stale_while_revalidate:`, `stale_if_error:` in
      #   seconds, `immutable: true`, and `cdn:`, a Hash of the same for CDN-Cache-Control; see
      #   {HTTP::CacheControl}
      # @raise [ConfigurationError] when the application is built, for another directive
      def cache_control(**directives)
        Declaring.declare(self) { |declarations, _| declarations.cache_control = directives.freeze }
      end

      # Declares that the Ruby code of this resource (blocks of attributes, links, meta and `if:`, and readers
      # of the model) always returns the same for the same columns, locale and time zone. `cache :exact`
      # caches documents with such code only if it is pure. Blocks with a viewer are never pure; see
      # {.vary_on}.
      #
      #   pure                                                              # the whole resource
      #   attribute(:title, columns: [:name], pure: true) { |row| row.name.upcase }   # one attribute
      # @param value [Boolean] false revokes the declaration of the superclass
      def pure(value = true) # rubocop:disable Style/OptionalBooleanParameter
        Declaring.declare(self) { |declarations, _| declarations.pure = value }
      end

      # Declares what the Ruby code of this resource depends on besides columns. The values become part of the
      # cache key, together with `I18n.locale` and `Time.zone`.
      #
      #   vary_on { |viewer| [viewer&.role, Current.tenant.id] }
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Object] strings, symbols, numbers, booleans, nil, or arrays of them; anything else
      #   raises a ConfigurationError
      def vary_on(&block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("vary_on needs a block: { |viewer| [viewer&.role] }", location) unless block

          declarations.variation = block
        end
      end

      # Chooses whether blocks load associations for all records of a document at once: the first block that
      # calls `user.posts` then loads the posts of all users that were loaded with this user.
      #
      #   together false    # each record loads its own
      # @param value [Boolean] by default {Castellan.together}, which is true
      # @raise [DeclarationError] if the value is neither true nor false
      def together(value)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("together must be true or false, got #{value.inspect[0, 60]}", location) unless [true, false].include?(value)

          declarations.together = value
        end
      end

      # Declares the format of documents.
      # @param name [:json_api, :nested] JSON:API 1.1, or plain JSON as by `to_json(include: …)`
      # @raise [DeclarationError] for another format
      def format(name)
        Declaring.declare(self) { |declarations, location| declarations.format(name, location: location) }
      end

      # Declares how to transform declared names into member names.
      # @param name [:none, :dash, :camel, :camel_lower, :underscore] by default :none
      # @raise [DeclarationError] for an unknown transform, or if two members get the same name
      def key_transform(name)
        Declaring.declare(self) { |declarations, location| declarations.key_transform(name, location: location) }
      end

      # @return [Definition] frozen and memoized
      # @raise [DeclarationError]
      def definition
        @definition || DEFINING.synchronize { @definition ||= Definition.new(self, declarations).tap { declarations.freeze } }
      end

      # @return [Declarations] the declarations of the superclass and of this class
      def declarations
        @declarations ||= self == Resource ? Declarations.new : superclass.declarations.copy
      end

      # @return [Array<Class>] all subclasses, recursively
      def descendants
        subclasses.flat_map { |resource| [resource, *resource.descendants] }
      end

      DEFINING = Monitor.new
      private_constant :DEFINING
    end
  end
end
