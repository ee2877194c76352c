# frozen_string_literal: true

# The document that a viewer gets, worked out in Ruby from all rows: what is out of scope is left out of everything.
#
#   Reference.new(rows, relationships: { knights: %i[guild] }, paths: { knights: %w[guild.name] }, visible: { guilds: [1] })
#            .document(:knights, ids: [1, 2], include: { guild: {} }, fields: { "knights" => %w[name guild] })
class Reference
  # @param rows [Hash{Symbol => Array<Hash>}] by table
  # @param relationships [Hash{Symbol => Array<Symbol>}] declared, by table
  # @param paths [Hash{Symbol => Array<String>}] declared, by table
  # @param visible [Hash{Symbol => Array<Integer>}] by table the ids that the viewer may see; all of a table that is not there
  def initialize(rows, relationships:, paths:, visible:)
    @rows = rows
    @relationships = relationships
    @paths = paths
    @visible = visible
  end

  # @return [Hash] "data" and "included", each by type and id
  def document(table, ids:, include:, fields: {})
    @fields = fields
    roots = @rows[table].select { |row| ids.include?(row[:id]) && visible?(table, row) }
    data = roots.to_h { |row| [key(table, row), object(table, row)] }
    included = {}
    roots.each { |row| walk(table, row, include, included) }
    { "data" => data, "included" => included.except(*data.keys) }
  end

  def visible?(table, row) = !@visible.key?(table) || @visible[table].include?(row[:id])

  private

  def key(table, row) = [table.name, row[:id].to_s]

  def related(table, row, name)
    ScopesWorld::RELATED.fetch(table).fetch(name).last.call(@rows, row).select { |other, found| visible?(other, found) }
  end

  def walk(table, row, tree, included)
    tree.each do |name, below|
      related(table, row, name).each do |other, found|
        included[key(other, found)] = object(other, found)
        walk(other, found, below.slice(*@relationships[other]), included)
      end
    end
  end

  def object(table, row)
    written = @fields[table.name]
    attributes = { "name" => row[:name], "level" => row[:level] }.merge(@paths[table].to_h { |path|
      [path.tr(".", "_"), at(table, row, path)]
    })
    attributes = attributes.slice(*written) if written
    relationships = @relationships[table].to_h { |name| [name.name, linkage(table, row, name)] }
    relationships = relationships.slice(*written) if written
    [attributes, relationships]
  end

  def linkage(table, row, name)
    links = related(table, row, name).map { |other, found| key(other, found) }
    ScopesWorld::RELATED.fetch(table).fetch(name).first == :has_many ? links.sort : links.first
  end

  # A step is looked at through the scope of its relationship's resource; of one that is not declared no resource is known.
  def at(table, row, path)
    *steps, column = path.split(".")
    declared = true
    steps.each do |step|
      declared &&= @relationships[table].include?(step.to_sym)
      table, row = ScopesWorld::RELATED.fetch(table).fetch(step.to_sym).last.call(@rows, row).first
      return nil if row.nil? || (declared && !visible?(table, row))
    end
    row[column.to_sym]
  end
end
