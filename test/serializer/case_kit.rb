# frozen_string_literal: true

# Evaluates the same class bodies with jsonapi-serializer and with Castellan::Serializer, each in its own
# process.
#
#   SerializerCases.add("attributes") do |kit|
#     kit.define("MovieSerializer") { attributes :name }
#     kit.of("MovieSerializer", Movie.new(1, "Metropolis"))
#   end
#
#   ruby test/serializer/run_cases.rb castellan   # the answers of all cases, as JSON
#
# A case returns a serializer (its hash and its JSON are compared) or any other value (its `inspect` is).
require "zlib"

module SerializerCases
  ALL = {} # rubocop:disable Style/MutableConstant

  def self.add(name, &block)
    raise ArgumentError, "two cases are called #{name}" if ALL.key?(name)

    ALL[name] = block
  end

  # The module in which one case defines its serializers.
  class Kit
    attr_reader :space, :tested

    def initialize(tested, number)
      @tested = tested
      @space = SerializerCases.const_set(:"Case#{number}", Module.new)
    end

    # Defines a serializer by `class`, so that its name is set when the module is included, as in a file.
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

  # In the quick run, of the cases that combine lists or are random.
  SHARE = Integer(ENV.fetch("SERIALIZER_SHARE", "1"))
  COMBINED = /\A(record states|relation|random|active record|ids|shop)\b/

  class << self
    # @return [Hash{String => Array}] the answer of each case, by its name
    def answers(tested)
      chosen.each_with_index.to_h { |(name, block), number| [name, answer(block, tested, number).map { |text| without_number(text) }] }
    end

    private

    def chosen
      ALL.select { |name, _| !name.match?(COMBINED) || (Zlib.crc32(name) % SHARE).zero? }
    end

    # Removes the number of the module, so that answers of a subset of the cases are comparable.
    def without_number(text) = text.to_s.gsub(/Case\d+(Again)?/, "Case")

    def answer(block, tested, number)
      value = block.call(Kit.new(tested, number))
      return [:value, value.inspect] unless value.class.include?(tested)

      [:document, value.serializable_hash.inspect, json(value, block, tested, number)]
    rescue StandardError => error
      [:error, error.class.name.split("::").last, error.is_a?(NoMethodError) ? "" : error.message.lines.first.chomp]
    end

    # Builds a new serializer: the second call of the same one in jsonapi-serializer omits `included`.
    def json(value, block, tested, number)
      return value.to_json if tested.name.start_with?("Castellan")

      block.call(Kit.new(tested, "#{number}Again")).serializable_hash.to_json
    end
  end
end
