# frozen_string_literal: true

require_relative "drafts"

module Castellan
  # Generates random documents: trees of nodes with rows, coders and links. Equal seeds generate equal
  # documents.
  #
  #   RandomDocuments.new(Random.new(7)).draft    # => a Drafts::Draft
  class RandomDocuments
    include Drafts

    TYPES = %w[users posts comments tags].freeze
    IDS = [*1..9, *"1".."9", "a", "ü", "x\"y", "01", "6f1c1a0e-0000-4000-8000-00000000000a", 2**62, 2**70, -5, 10**17, (10**17).to_s,
           -(10**17), 0].freeze
    TEXTS = ["", "a", "plain text of some length", "\"quoted\"", "back\\slash", "line\nend\ttab", "\u0000\u001f\u007f", "äöü€",
             "\u{1F3F0} keep", "</script>&",
             "\u2027\u2028\u2029\u202a", "é".encode("ISO-8859-1"), "bytes \xC3\xA9".b, :symbol, 42, "x" * 5000, "ä" * 40].freeze
    VALUES = {
      text: TEXTS,
      integer: [0, 1, -1, "42", "-7", 2**62 - 1, 2**62, -(2**62) - 1, 2**80, "123456789012345678901234567890"],
      boolean: [true, false, 0, 1, "t", "f", "0", "1", "true", "false"],
      float: [0.0, -0.0, 1.5, -2.25, 1e20, 1e-9, 3, "1", "0.1", "-12.50", "1e5", "0.0001234", "123456789012345678", 0.1 + 0.2],
      decimal: ["0", "12.50", "-0.0010", 7, 2.5, 1e25, "1e-5", "123456789.123456789"],
      date: ["2024-01-31", "2024-02-29 10:00:00", Time.utc(2020, 2, 29)],
      datetime: ["2024-01-31 10:00:00", "2024-01-31 10:00:00.1", "2024-01-31T10:00:00.123456Z", "2024-01-31 10:00:00+02",
                 Time.utc(2024, 1, 1, 0, 0, 1.5r)],
      json: ['{"a":[1,"<"]}', "null", 1, 2.5, "[]", "\"\u2028\""]
    }.freeze
    AFTER = ["", ",\"links\":{\"self\":\"/a?b=1&c=<d>\"}", ",\"meta\":{\"é\":[null]}", ",\"links\":{},\"meta\":{\"a\":\"\u2028\"}"].freeze
    COMPUTED = ["1", "\"x\"", '{"a":"</b>"}', "null", "\"é\""].freeze

    # @param asides [Boolean] whether to add conditions, links, meta objects and polymorphic relationships
    def initialize(random, asides: true)
      @random = random
      @asides = asides
    end

    # @return [Drafts::Draft]
    def draft(depth = @random.rand(0..3), ids: IDS.shuffle(random: @random))
      rows = Array.new(@random.rand(0..7)) { [pick(ids)] }
      rows.uniq! { |row| row[0].to_s } if @random.rand < 0.9
      coders = { id: integers?(rows) ? :integer : :text }
      @random.rand(0..4).times { |number| add_member(coders, rows, number) }
      type = pick(TYPES)
      edges = Array.new(depth.zero? ? 0 : @random.rand(0..3)) { |number| link(rows, number, depth, ids) }
      Draft.new(type, coders, rows, edges, (asides(rows.size, coders.size - 1, edges.size) if @asides && @random.rand < 0.4))
    end

    private

    def pick(list) = list[@random.rand(list.size)]

    def asides(rows, members, edges)
      after = Array.new(rows) { pick(AFTER) } if @random.rand < 0.5
      truths = [true, false, nil, 1]
      Plan::RowSet::Asides.new(some(members, rows, truths), some(edges, rows, truths), after, some(edges, rows, AFTER))
    end

    # Returns one value per row, for some of the positions.
    def some(positions, rows, values)
      positions.times.select { pick([true, false]) }.to_h { |position| [position, Array.new(rows) { pick(values) }] }
    end

    def integers?(rows) = rows.all? { |row| row[0].is_a?(Integer) }

    def add_member(coders, rows, number)
      kind = pick([*VALUES.keys, *VALUES.keys, :computed, :viewer])
      name = :"#{kind} <#{number}>"
      case kind
      when :viewer then coders[name] = :viewer
      when :computed then coders[name] = rows.map { pick(COMPUTED) }
      else
        coders[name] = kind
        rows.each { |row| row << (@random.rand < 0.1 ? nil : pick(VALUES[kind])) }
      end
    end

    def link(rows, number, depth, ids)
      return to_several(rows, number, depth, ids) if @asides && @random.rand < 0.2

      many = @random.rand < 0.6
      to = draft(depth - 1, ids:) if @random.rand < 0.7
      links = links(rows, to, many, ids)
      edge(:"edge #{number}", links, type: to ? to.type : pick(TYPES), many:, to:, written: to.nil? || @random.rand < 0.9)
    end

    def to_several(rows, number, depth, ids)
      to = Array.new(@random.rand(1..3)) { draft(depth - 1, ids:) if @random.rand < 0.7 }
      parents = rows.map(&:first) + [99, nil, "none"]
      list = Array.new(@random.rand(0..12)) { [pick(parents), @random.rand(to.size), pick([nil, *ids])] }
      edge(:"edge #{number}", Pairs.new(list, 0, 2, 1), type: to.map { |one| one ? one.type : pick(TYPES) }, to:, many: @random.rand < 0.6,
                                                        written: to.none? || @random.rand < 0.9)
    end

    def links(rows, to, many, ids)
      case @random.rand
      when 0..0.4 then in_column(rows, many, ids)
      when 0.4..0.65 then pairs(rows, ids)
      when 0.65..0.8 then lists(rows, ids)
      else to ? own_rows(rows, to) : pairs(rows, ids)
      end
    end

    # Links in a column of the related table.
    def own_rows(rows, to)
      position = to.rows.map(&:size).max || 0
      parents = rows.map(&:first) + [nil, "none"]
      to.rows.each { |row| row << pick(parents) }
      Pairs.new(to.rows, position, 0)
    end

    def in_column(rows, many, ids)
      position = rows.map(&:size).max || 0
      rows.each { |row| row << (many ? many_ids(ids) : pick([nil, "", *ids])) }
      InColumn.new(position)
    end

    def many_ids(ids)
      list = Array.new(@random.rand(0..4)) { pick(ids) }.uniq(&:to_s)
      if list.size == 1
        pick([list[0], list[0].to_s])
      else
        pick([list.join(","), list.empty? ? nil : list.join(",")])
      end
    end

    # Links as lists of integers, as PostgreSQL writes them.
    def lists(rows, ids)
      parents = rows.map(&:first).grep(Integer) << 99
      related = ids.grep(Integer) << 8
      list = Array.new(@random.rand(0..12)) { [pick(parents), pick(related)] }
      Lists.new([list.empty? ? [nil, nil] : list.transpose.map { |column| "{#{column.join(",")}}" }])
    end

    def pairs(rows, ids)
      parents = rows.map(&:first) + [99, nil, "none"]
      swapped = @random.rand < 0.5
      list = Array.new(@random.rand(0..12)) { [pick(parents), pick([nil, *ids])] }
      list.sort_by! { |parent, _| parent.to_s } if @random.rand < 0.5
      Pairs.new(list.map { |pair| swapped ? pair.reverse : pair }, swapped ? 1 : 0, swapped ? 0 : 1)
    end
  end
end
