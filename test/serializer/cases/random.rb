# frozen_string_literal: true

require_relative "../library"

# Random serializers, includes and fields, the same in each process. SERIALIZER_SEED and SERIALIZER_CASES
# change the fixed seed and number. Omits a known bug of jsonapi-serializer (lazy linkage below an include).
module SerializerCases
  # Generates the serializers of the library.
  class Inventor
    COLUMNS = { Book: %i[title pages price sold weight printed_at facts status author_id], Author: %i[name born_on publisher_id],
                Publisher: %i[name], Tag: %i[name], Cover: %i[colour book_id], Note: %i[text about_type] }.freeze
    RELATIONSHIPS = {
      Book: { author: %i[belongs_to author], cover: %i[has_one cover], tags: %i[has_many tag], notes: %i[has_many note] },
      Author: { publisher: %i[belongs_to publisher], books: %i[has_many book], mentor: %i[belongs_to author],
                students: %i[has_many author],
                notes: %i[has_many note] },
      Publisher: { authors: %i[has_many author] }, Tag: {}, Cover: { book: %i[belongs_to book] }, Note: {}
    }.freeze

    # @param oddities [Float] the share of members that need records
    def initialize(seed, oddities)
      @random = Random.new(seed)
      @oddities = oddities
    end

    # @return [Hash] the options `include` and `fields`
    def call(kit, root)
      @lazy = []
      COLUMNS.each_key { |name| define(kit, name, lazy: name == root && chance(0.3)) }
      { include: includes(root), fields: fields, params: { word: "w" } }.compact
    end

    def source(root)
      model = SerializerCases.const_get(root)
      [-> { model.order(:id) }, -> { model.order(:id).to_a }, -> { model.order(id: :desc).limit(3) }, -> { model.order(:id).load },
       -> { model.find(2) }].sample(random: @random)
    end

    private

    def chance(share) = @random.rand < share
    def odd(share) = chance(share * @oddities)
    def some(list) = list.select { chance(0.5) }

    def define(kit, name, lazy:)
      serializer = kit.define("#{name}Serializer")
      serializer.set_key_transform(%i[dash camel camel_lower underscore].sample(random: @random)) if chance(0.25)
      serializer.set_type("#{name}s".downcase.to_sym) if chance(0.2)
      attributes(serializer, COLUMNS.fetch(name))
      RELATIONSHIPS.fetch(name).each { |one, (macro, target)| relate(serializer, one, macro, target, lazy) if chance(0.7) }
      around(serializer)
    end

    def attributes(serializer, columns)
      some(columns).each { |column| serializer.attribute(column) }
      serializer.attribute(:told) { |record, params| "#{record.id}#{params[:word]}" } if odd(0.15)
      serializer.attribute(:even, if: ->(record) { record.id.even? }) { |record| record.id } if odd(0.1)
      serializer.attribute(columns.first, &columns.first) if odd(0.1)
    end

    def relate(serializer, name, macro, target, lazy)
      options = { serializer: target }
      options[:lazy_load_data] = true if lazy && chance(0.6) && @lazy << name
      options[:links] = { self: ->(record) { "/#{name}/#{record.id}" } } if odd(0.1)
      options[:meta] = { a: 1 } if odd(0.1)
      options[:key] = :"other_#{name}" if odd(0.05)
      options[:if] = ->(record) { record.id > 1 } if odd(0.05)
      options[:record_type] = :thing if odd(0.05)
      return serializer.public_send(macro, name, options) { |record| record.public_send(name) } if odd(0.05)

      serializer.public_send(macro, name, options)
    end

    def around(serializer)
      serializer.link(:self) { |record| "/#{record.id}" } if odd(0.1)
      serializer.meta { |record| { id: record.id } } if odd(0.1)
      serializer.set_id { |record| "x#{record.id}" } if odd(0.05)
    end

    def includes(root)
      names = RELATIONSHIPS.fetch(root).keys
      depth = @lazy.any? ? 1 : 3
      paths = Array.new(@random.rand(4)) { path(root, 1 + @random.rand(depth)) }.compact
      paths.select { |one| names.include?(one.split(".").first.to_sym) }.map(&:to_sym)
    end

    def path(type, steps)
      names = RELATIONSHIPS.fetch(type).reject { |_, (_, target)| @lazy.any? && %i[book author].include?(target) }
      name, (_, target) = names.to_a.sample(random: @random)
      return unless name

      [name, (path(target.to_s.capitalize.to_sym, steps - 1) if steps > 1)].compact.join(".")
    end

    def fields
      return unless chance(0.4)

      types = some(COLUMNS.keys)
      types.to_h { |type| [type.to_s.downcase.to_sym, some(COLUMNS.fetch(type) + RELATIONSHIPS.fetch(type).keys)] }
    end
  end

  first = Integer(ENV.fetch("SERIALIZER_SEED", "1"))
  Integer(ENV.fetch("SERIALIZER_CASES", "200")).times do |number|
    add("random #{first + number}") do |kit|
      inventor = Inventor.new(first + number, number.even? ? 1.0 : 0.1)
      root = %i[Book Book Author Publisher Cover][(first + number) % 5]
      options = inventor.call(kit, root)
      resource = inventor.source(root).call
      known = (kit.get("#{root}Serializer").relationships_to_serialize || {}).keys
      include = options[:include].select { |path| known.include?(path.to_s.split(".").first.to_sym) }
      kit.of("#{root}Serializer", resource, **options, include: include)
    end
  end
end
