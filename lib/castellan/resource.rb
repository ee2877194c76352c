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
  # Declares a JSON:API type: model, members, the queries that clients may send, and visible rows.
  #
  #   class UserResource < Castellan::Resource
  #     model User
  #     attributes :email, :last_name
  #     attribute :employee_id, from: "employee.id"
  #     attribute(:name, columns: %i[first_name last_name]) { |row| "#{row.first_name} #{row.last_name}" }
  #     has_many :roles, :groups
  #     filter(:role) { |users, ids| users.where(id: Assignment.where(role_id: ids).select(:user_id)) }
  #     sort :last_name
  #     page size: 50, max_size: 200
  #   end
  #
  # A resource inherits its superclass's declarations and is frozen on first use.
  # {Document::OfResource} adds `document` and `render`.
  class Resource
    class << self
      # Declares the source of the rows. With single table inheritance, a resource of the base class covers
      # all classes; a resource of a subclass (`model Admin`) covers only that class.
      # @param source [Class, Object, Symbol, String] an ActiveRecord or Sequel model, a Sequel dataset, or
      #   the name of a table or view of the application's only database
      # @raise [DeclarationError] at boot, if no rows can be read from it
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

      # Declares that the rows of this resource have several types (single table inheritance). Collections,
      # related resources and linkage write each record as the resource of its class and omit rows of other
      # classes. This resource's filters, sorts, pages and scope apply to all types.
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
      # Without a model, the types are in several tables. Filters and sorts
      # that all of them have apply to the list:
      #
      #   class ActivityResource < Castellan::Resource
      #     types "IssueResource", "CommentResource"
      #     sort default: "-created_at"
      #     page :cursor, size: 20
      #   end
      # @param resources [Array<Class, String>] with a model, subclasses of this resource with different
      #   classes of the model; without a model, any resources
      # @raise [DeclarationError] without a resource; at boot, if one is not a subclass,
      #   or if the model has no type column
      def types(*resources)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("types: name the resources, such as types \"CarResource\", \"TruckResource\"", location) if resources.empty?

          declarations.types = resources.flatten.freeze
          declarations.locations[:types] = location
        end
      end

      # Declares the id, if it is not the primary key. It must equal the reader's value as a string, so enums,
      # times, decimals and custom types are read from records.
      # @param columns [Array<Symbol>] default: the primary key; several values are joined with "_"
      # @raise [DeclarationError] at boot, if a column does not exist, or without `id` and a primary key
      def id(*columns)
        Declaring.declare(self) { |declarations, location| declarations.identify(columns.flatten, location: location) }
      end

      # Declares attributes that are columns.
      # @param names [Array<Symbol>]
      # @param options [Hash] see {.attribute}
      def attributes(*names, **options)
        names.each { |name| attribute(name, **options) }
      end

      # Declares an attribute, see {Attribute}.
      # @param from [String, Hash, nil] a column at the end of to-one
      #   associations: "employee.id", { employee: :id }
      # @param columns [Array<Symbol>, nil] the columns that the block reads
      # @param preloads [Symbol, Array, Hash, nil] associations to preload for all
      #   records, if the block takes the record
      # @param if [Proc, nil] returns whether to write the attribute; takes
      #   the viewer, or the row and the viewer
      # @param if_columns [Array<Symbol>, nil] the columns that the `if:` block reads; without them, a block
      #   with two parameters receives the record
      # @param pure [Boolean, nil] see {.pure}; applies to this attribute's blocks and the model's reader
      # @param as_stored [Boolean] whether to write the column as stored,
      #   ignoring the model's methods and callbacks
      # @yieldparam row [#[], Object] a row with the listed columns; without `columns:`, the record
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @yieldreturn [Object] the value, written as the ORM would write it in JSON
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
      # @param value [String, Hash, nil] a URL with columns in braces
      #   ("/users/{id}"), or a constant link object
      # @param columns [Array<Symbol>, nil] the columns that the block reads;
      #   without them it receives the record
      # @param pure [Boolean, nil] see {.pure}; applies to this block
      # @yieldparam row [#[], Object] a row or the record
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @yieldreturn [String, Hash, nil]
      # @raise [DeclarationError] without a value or block, or with both
      def link(name, value = nil, columns: nil, pure: nil, &block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("link #{name.inspect}: write either a text or a block", location) if value.nil? == block.nil?

          declarations.links[name.to_sym] = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares the links of a resource that {Castellan.app} serves: `self` of each resource object, `self`
      # and `related` of each relationship. Links that are declared separately take precedence.
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
      # @param value [Hash, nil] a constant; also as keywords: `meta version: 1`
      # @param columns [Array<Symbol>, nil] the columns that the block reads;
      #   without them it receives the record
      # @param pure [Boolean, nil] see {.pure}; applies to this block
      # @yieldparam row [#[], Object] a row or the record
      # @yieldparam viewer [Object, nil] if the block takes two arguments
      # @yieldreturn [Hash, nil]
      # @raise [DeclarationError] without a Hash or block, or with both
      def meta(value = nil, columns: nil, pure: nil, **pairs, &block)
        value ||= pairs unless pairs.empty?
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("meta: write either a Hash or a block", location) if value.nil? == block.nil?
          Declaring.refuse("meta must be a Hash, got #{value.inspect[0, 60]}", location) unless value.nil? || value.is_a?(Hash)

          declarations.meta = Computed.of(block || value, columns: columns, pure: pure, location: location)
        end
      end

      # Declares an attribute that differs per viewer. Cached documents have placeholders for its values, so
      # that all viewers share them; the block runs once per document.
      #
      #   per_viewer(:read, version: ->(viewer) { viewer.readings_at }) { |ids, viewer| viewer.read_ids(ids) }
      #   per_viewer(:read, version: { readings: :user_id }) { |ids, viewer| viewer.read_ids(ids) }
      # @param version [#call, String, Symbol, Hash{Symbol => Symbol}, nil] lets conditional requests of
      #   cached documents skip the block, and caches its values. Either a callable that takes the viewer and
      #   returns a value that changes with the viewer's values; or the table that contains them, alone or
      #   with the column of the viewer's id. The viewer needs an `id`
      # @yieldparam ids [Array<Integer, String>] the ids of the document's records of this type
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Array, Hash] the ids for which the value is true, or a Hash from id to value
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

      # Declares the rows that a viewer may see. It applies in SQL to every read of this resource:
      # collections, single records, includes, linkage, `from:` paths, counts, streams and given records.
      #
      #   scope { |tasks, viewer| viewer ? tasks.where(team_id: viewer.team_ids) : tasks.none }
      #
      # The block runs once per document. To hide nothing, return the relation unchanged. For the order of
      # collections, declare {#sort} with `default:`; that of a scope with joins or a limit does not count.
      # @yieldparam relation [Object] the model's relation or dataset (`Task.all`, with its default scope)
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Object] a relation or dataset of the model; anything else raises
      #   {DeclarationError} when a document is created
      def scope(&block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("scope needs a block: { |relation, viewer| relation.where(…) }", location) unless block

          declarations.scope = Declarations::Scope.new(block, location).freeze
        end
      end

      # Allows clients to write attributes and relationships through `Castellan.app`. By default they cannot. Replaces what
      # the superclass declares for the same names.
      #
      #   writable :title, :body, :author
      #   writable :slug, on: :create
      #   writable(:state) { |viewer| viewer&.editor? }
      #   writable :id                                   # clients may choose the id of a new record
      # @param names [Array<Symbol>] attributes, relationships, `:id`, or a writer of the model
      #   that is not an attribute (`:password`)
      # @param on [Symbol, Array<Symbol>] `:create`, `:update` or both (default)
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Boolean] whether this viewer may write them; without a block every viewer may
      # @raise [DeclarationError] for another `on:`; at boot, if the model has no such writer
      def writable(*names, on: Writing::ACTIONS, &block)
        Declaring.declare(self) do |declarations, location|
          wrong = (Array(on) - Writing::ACTIONS).first
          Declaring.refuse("writable: on: is :create, :update or both, got #{wrong.inspect}", location) if wrong

          declarations.writing = declarations.writing.with_names(names.map(&:to_sym).freeze, Array(on).freeze, block, self)
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

      # Requires `If-Match` when clients change or delete a record. Without the header they
      # get a 428, with an outdated ETag a 412 (RFC 9110, section 13.1.1; RFC 6585, section
      # 3). By default the header is optional.
      def require_if_match
        Declaring.declare(self) { |declarations, _| declarations.writing = declarations.writing.with(conditional: true) }
      end

      # Declares a policy: whether a viewer may create, update or delete a record; otherwise the client gets a
      # 403. All policies of an action must return true.
      #
      #   authorize(:update, :delete) { |viewer, post| post.author_id == viewer.id }
      #   authorize(:create) { |viewer, _, attributes| attributes[:blog]&.writers&.include?(viewer) }
      #   authorize Castellan::Write::PunditAuthorizer
      # @param actions [Array<Symbol>] `:create`, `:update`, `:delete`; default: all. Instead of
      #   the block, the last argument may be an authorizer, called with action, viewer and
      #   record ({Write::PunditAuthorizer})
      # @yieldparam viewer [Object, nil]
      # @yieldparam record [Object, nil] as it is before the change; nil for `:create`
      # @yieldparam attributes [Hash{Symbol => Object}] the attributes and associations that will be written
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

      # Limits the depth of `include` from this resource: `?include=author.team` has depth 2. Applies
      # to Strings, which come from clients; the application may include more: `document(scope,
      # include: { author: { team: :company } })`.
      # @param levels [Integer] 1 to 10; default: 3
      def include_depth(levels)
        Declaring.declare(self) { |declarations, location| declarations.allow_depth(levels, location: location) }
      end

      # Declares to-many relationships.
      # @param names [Array<Symbol>] associations of the model
      # @param resource [Class, String, Array, Hash, nil] default: `<Singular>Resource` in the same
      #   or an outer namespace. For a polymorphic association an Array, `[PostResource,
      #   UserResource]`, or a Hash by model
      # @param links [Hash{Symbol => String, Proc}] links of the relationship object, see {.link}
      # @param meta [Hash, Proc] meta of the relationship object, see {.meta}
      # @param if [Proc] see {.attribute}
      # @param columns [Array<Symbol>] the columns that the blocks of links, meta and `if:` read;
      #   without them they receive the record
      # @param pure [Boolean, nil] see {.pure}; applies to the blocks of links, meta and `if:`
      # @param from [Symbol, nil] the association, if its name differs:
      #   `has_many :images, from: :variant_images`
      # @param lazy [Boolean] whether to write linkage only if the records are included; otherwise the member
      #   has only its links and meta, or is omitted if it has none
      # @param include [Boolean] whether clients may include the records; if false, `?include=` returns a 400
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

      # Allows clients to filter. Without a block the names are columns: `filter[status]=open,held`,
      # `filter[created_at][gte]=2026-01-31`; see {Plan::Comparisons} for the operators.
      #
      #   filter :status, :created_at
      #   filter :company, from: "company.name"
      #   filter(:tag) { |posts, names| posts.where(id: Tag.where(name: names).select(:post_id)) }
      #
      # This resource's `scope` applies to the result. It does not restrict other resources that a block
      # reads; use `TagResource.visible_to(viewer)` for these. A block refuses a value with
      # `raise Castellan::BadRequest, "…"`: a 400 whose `source` names the parameter.
      # @param names [Array<Symbol, String>] columns, or attributes that are columns or
      #   have `from:`; with a block, one name
      # @param from [String, Hash, nil] a column at the end of to-one associations, see {.attribute}
      # @param reveals [Boolean] whether clients may filter by a column that an `if:` hides in some rows. Such
      #   a filter reveals the column's values; without `reveals: true` it returns a 400
      # @yieldparam relation [Object] the relation or dataset
      # @yieldparam values [Array<String>]
      # @yieldparam viewer [Object, nil] if the block takes three arguments
      # @yieldreturn [Object] the filtered relation or dataset
      # @raise [DeclarationError] for several names with a block or `from:`; at boot, for an unknown column or
      #   a column whose type cannot be compared
      def filter(*names, from: nil, reveals: false, &block)
        Declaring.declare(self) { |declarations, location| declarations.filter(names, from, block, reveals, location: location) }
      end

      # Allows clients to sort: `sort=-last_name,email`. Rows with equal values are sorted by the primary key.
      #
      #   sort :last_name, default: "last_name"
      #   sort :company, from: "company.name"
      # @param names [Array<Symbol>] columns, or attributes that are columns or have `from:`
      # @param from [String, Hash, nil] a column at the end of to-one associations, see {.attribute}
      # @param default [String, nil] the order without `sort`, e.g. "-number"
      # @param reveals [Boolean] see {.filter}; an order also reveals values
      # @raise [DeclarationError] for an unsortable default, or several names with `from:`; at boot, for an
      #   unknown column
      def sort(*names, from: nil, default: nil, reveals: false)
        Declaring.declare(self) do |declarations, location|
          declarations.sort(names, from: from, default: default, reveals: reveals, location: location)
        end
      end

      # Paginates collections: by number (`page[number]=2&page[size]=20`), or with the Cursor Pagination
      # profile (`page[after]=…&page[size]=20`; the links of each page contain the cursors).
      #
      #   page size: 20, max_size: 100, count: true
      #   page :cursor, size: 20, max_size: 100
      #   page false                                   # takes back the page of the superclass
      # @param kind [Symbol, false] :number or :cursor
      # @param size [Integer] the default page size
      # @param max_size [Integer] the highest page size that clients may request
      # @param count [Boolean, String] whether to write the total number into
      #   `meta`, as "total" or with this name
      # @param cursors [Boolean] whether to write each item's cursor into its
      #   `meta.page.cursor`, for `page[after]`
      # @raise [DeclarationError] unless 1 <= size <= max_size; for another kind
      def page(kind = :number, size: nil, max_size: size, count: false, cursors: false)
        Declaring.declare(self) { |declarations, location| declarations.page(kind, size, max_size, count, cursors, location: location) }
      end

      # Caches the documents of this resource in the configured store.
      #
      #   cache :exact
      #   cache :exact, expires_in: 60                                  # a block reads the clock
      #   cache :exact, stale_while_revalidate: 5, stale_if_error: 60   # may serve the previous version
      # @param kind [Symbol] :exact serves a cached document until one of its tables changes. :notified serves
      #   it until the process is notified of the change, some milliseconds later, without querying the
      #   database ({Versions::NotifiedVersions})
      # @param by [Symbol, String, Array] columns for which `castellan_versions by:` counts changes.
      #   If a document's scope has one value of such a column (such as the tenant's id), or the
      #   document is of one record by its id, changes of other rows do not invalidate it. The first
      #   column that the scope restricts is used
      # @param expires_in [Numeric, nil] seconds
      # @param stale_while_revalidate [Numeric, nil] seconds for which an expired or changed document is still
      #   served while one request renders it again
      # @param stale_if_error [Numeric, nil] seconds for which it is served if rendering raises
      # @raise [DeclarationError] for another kind
      def cache(kind, expires_in: nil, stale_while_revalidate: nil, stale_if_error: nil, by: nil, layer: nil)
        Declaring.declare(self) do |declarations, location|
          declarations.cache(kind, location: location, layer: layer, by: by, expires_in: expires_in,
                                   stale_while_revalidate: stale_while_revalidate, stale_if_error: stale_if_error)
        end
      end

      # Declares how long browsers, proxies and CDNs may reuse a document of {Castellan.app} without
      # revalidation. The default is "no-cache". Documents of authenticated viewers, or with per-viewer
      # attributes, are "private": `s_maxage` and `cdn` do not apply to them.
      #
      #   cache_control s_maxage: 600, stale_while_revalidate: 30, stale_if_error: 86_400   # with {Purge}
      #   cache_control max_age: 60, cdn: { max_age: 3600 }
      # @param directives [Hash] `max_age:`, `s_maxage:`, `stale_while_revalidate:`,
      #   `stale_if_error:` in seconds, `immutable: true`, and `cdn:`, a Hash of the same seconds for
      #   CDN-Cache-Control; see {HTTP::CacheControl}
      # @raise [DeclarationError] for an unknown directive or value, when the application is built
      def cache_control(**directives)
        Declaring.declare(self) do |declarations, location|
          declarations.cache_control = directives.freeze
          declarations.locations[:cache_control] = location
        end
      end

      # Declares that the resource's Ruby code (blocks of attributes, links, meta and `if:`, the
      # model's own readers) always returns the same value for the same columns, locale and time
      # zone. `cache :exact` caches documents with such code only if it is pure. Blocks that take the
      # viewer are never pure; see {.vary_on}.
      #
      #   pure                                                              # the whole resource
      #   attribute(:title, columns: [:name], pure: true) { |row| row.name.upcase }   # one attribute
      # @param value [Boolean] false revokes the declaration of the superclass
      def pure(value = true) # rubocop:disable Style/OptionalBooleanParameter
        Declaring.declare(self) { |declarations, _| declarations.pure = value }
      end

      # Declares the other inputs of the resource's Ruby code. Their values become part of the cache
      # key, like `I18n.locale` and `Time.zone`.
      #
      #   vary_on { |viewer| [viewer&.role, Current.tenant.id] }
      # @yieldparam viewer [Object, nil]
      # @yieldreturn [Object] strings, symbols, numbers, booleans, nil, or arrays of them;
      #   anything else raises a ConfigurationError
      def vary_on(&block)
        Declaring.declare(self) do |declarations, location|
          Declaring.refuse("vary_on needs a block: { |viewer| [viewer&.role] }", location) unless block

          declarations.variation = block
        end
      end

      # Sets whether blocks of this resource's documents load associations for all records at once: the first
      # block that calls `user.posts` then loads the posts of all users that were loaded together.
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

      # Declares how member names are derived from declared names.
      # @param name [:none, :dash, :camel, :camel_lower, :underscore] default: :none
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

      prepend Declaring.checked(instance_methods(false).map { |name| instance_method(name) })
    end
  end
end
