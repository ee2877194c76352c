# frozen_string_literal: true

# Evaluates the same class bodies with jsonapi-serializer and with Castellan::Serializer, each in a process of its own.
#
#   SerializerCases.add("attributes") do |kit|
#     kit.define("MovieSerializer") { attributes :name }
#     kit.of("MovieSerializer", Movie.new(1, "Metropolis"))
#   end
#
#   ruby test/serializer/run_cases.rb castellan   # the answers of all cases, as JSON
#
# A case answers a serializer (its hash and its JSON are compared) or any other value (its `inspect` is).
module SerializerCases
  ALL = {} # rubocop:disable Style/MutableConstant

  def self.add(name, &block)
    raise ArgumentError, "two cases are called #{name}" if ALL.key?(name)

    ALL[name] = block
  end

  # One case's world: a module of its own for its serializers.
  class Kit
    attr_reader :space, :tested

    def initialize(tested, number)
      @tested = tested
      @space = SerializerCases.const_set(:"Case#{number}", Module.new)
    end

    # Defines a serializer; its name is known when the module is included, as in a file.
    def define(name, superclass = nil, &body)
      @space.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        class #{name} #{"< #{superclass}" if superclass} # class FilmSerializer < MovieSerializer
        end
      RUBY
      serializer = @space.const_get(name)
      serializer.include(tested) unless superclass
      serializer.class_eval(&body) if body
      serializer
    end

    def of(name, resource, **options)
      @space.const_get(name).new(resource, options)
    end

    def get(name) = @space.const_get(name)
  end

  class << self
    # @return [Hash{String => Array}] the answer of each case
    def answers(tested)
      ALL.each_with_index.to_h { |(name, block), number| [name, answer(block, tested, number).map { |text| without_number(text) }] }
    end

    private

    # So that answers can be compared when not all cases are run.
    def without_number(text) = text.to_s.gsub(/Case\d+(Again)?/, "Case")

    def answer(block, tested, number)
      value = block.call(Kit.new(tested, number))
      return [:value, value.inspect] unless value.class.include?(tested)

      [:document, value.serializable_hash.inspect, json(value, block, tested, number)]
    rescue StandardError => error
      [:error, error.class.name.split("::").last, error.is_a?(NoMethodError) ? "" : error.message.lines.first.chomp]
    end

    # jsonapi-serializer answers its second question without `included`, so it is asked anew.
    def json(value, block, tested, number)
      return value.to_json if tested.name.start_with?("Castellan")

      block.call(Kit.new(tested, "#{number}Again")).serializable_hash.to_json
    end
  end
end
