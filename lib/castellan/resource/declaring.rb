# frozen_string_literal: true

module Castellan
  class Resource
    # Adds the declaration of a resource's class method to its {Declarations}.
    #
    #   Declaring.declare(UserResource) { |declarations, location| declarations.type = "people" }
    #
    # A separate module, so that its methods cannot clash with those of the application's classes.
    module Declaring
      FILES = [__FILE__, File.expand_path("../resource.rb", __dir__)].freeze
      NAME = /\A\w+(?:\.\w+)?\z/ # a table's name, optionally with its schema
      OTHERS = { serializer: :resource, class_name: :resource, polymorphic: :resource, key: :from, max: :max_size,
                 expires: :expires_in }.freeze # options of other libraries
      MACROS = %i[has_many has_one belongs_to].freeze
      private_constant :FILES, :NAME, :OTHERS, :MACROS

      class << self
        # @param resource [Class]
        # @yieldparam declarations [Declarations]
        # @yieldparam location [String] the line of the resource's body
        # @raise [DeclarationError] with the resource's name
        # @raise [ConfigurationError] once the resource is in use
        def declare(resource)
          declarations = resource.declarations
          raise ConfigurationError, "#{resource.name || "this resource"} is in use and can no longer be changed" if declarations.frozen?

          caller = caller_locations(2, 8).find { |frame| !FILES.include?(frame.path) }
          yield declarations, "#{caller.path}:#{caller.lineno}"
        rescue DeclarationError => error
          raise resource.name ? error.of(resource.name) : error
        end

        # Returns a module that refuses unknown options, because Ruby's ArgumentError would name neither the
        # resource nor the line.
        # @param methods [Array<UnboundMethod>] the class methods of {Resource}; those without options are left out
        # @return [Module]
        def checked(methods)
          options = methods.to_h { |declared| [declared.name, options_of(MACROS.include?(declared.name) ? method(:relate) : declared)] }
          Module.new do
            options.reject { |_, known| known.empty? }.each do |name, known|
              define_method(name) do |*arguments, **given, &block|
                wrong = given.keys - known
                Declaring.declare(self) { |_, location| Declaring.unknown(name, wrong.first, known, location) } if wrong.any?
                super(*arguments, **given, &block)
              end
            end
          end
        end

        # @raise [DeclarationError]
        def unknown(method, option, known, location)
          nearest = OTHERS[option] if known.include?(OTHERS[option])
          refuse("#{method} has no option #{option.inspect}#{nearest ? " (write #{nearest}:)" : Nearest.hint(option, known)}", location)
        end

        # @param macro [:has_many, :has_one, :belongs_to]
        # @param names [Array<Symbol>]
        # @param options see {Resource.has_many}
        def relate(declaring, macro, names, block, resource: nil, from: nil, links: {}, meta: nil, columns: nil, lazy: false,
                   include: true, if: nil, pure: nil)
          shown = binding.local_variable_get(:if)
          declare(declaring) do |declarations, location|
            code = { columns: columns, pure: pure, location: location }
            links.is_a?(Hash) ||
              refuse("links: must be a Hash, such as links: { related: \"/posts/{id}/tags\" }, got #{links.inspect}", location)
            around = { condition: Condition.of(shown, shared: true, **code),
                       links: links.to_h { |link, value| [link.to_sym, Computed.of(value, **code)] }.freeze,
                       meta: meta && Computed.of(meta, **code) }
            from!(from, macro, names, block, location) if from
            names.each do |name|
              declarations.relationship(name, macro: macro, resource: resource, from: from, block: block, lazy: lazy, include: include,
                                              location: location, **around)
            end
          end
        end

        def from!(from, macro, names, block, location)
          many = names.map(&:inspect).join(", ")
          refuse("from: #{from.inspect} names the association of one relationship; declare #{many} one by one", location) unless names.one?
          refuse("#{macro} #{many}: from: names an association; leave out the block", location) if block
        end
        private :from!

        # @return [Boolean] whether the version is a table's name, alone or with a column
        def table?(version)
          table, column = version.is_a?(Hash) && version.size == 1 ? version.first : [version, :id]
          [table, column].all? { |name| (name.is_a?(String) || name.is_a?(Symbol)) && NAME.match?(name) }
        end

        # @raise [DeclarationError]
        def refuse(text, location)
          raise DeclarationError.new(text, location: location)
        end

        private

        # @return [Array<Symbol>] empty if the method takes any options
        def options_of(method)
          return [] if method.parameters.any? { |kind, _| kind == :keyrest }

          method.parameters.filter_map { |kind, name| name if %i[key keyreq].include?(kind) }
        end
      end
    end
  end
end
