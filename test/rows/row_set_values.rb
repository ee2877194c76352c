# frozen_string_literal: true

require "bigdecimal"
require "json"
require "time"

# Converts a RowSet to a tree of plain values without the encoders: the slow oracle of the rows tests.
#
#   RowSetValues.new(plan, row_set).to_a
#   # => [{ "id" => "1", "email" => "ada@example.com", "roles" => [{ "id" => "2", "title" => "chief" }] }]
class RowSetValues
  def initialize(plan, row_set)
    @plan = plan
    @row_set = row_set
  end

  def to_a
    objects(@plan.root).values
  end

  private

  def objects(node)
    (@objects ||= {}.compare_by_identity)[node] ||= begin
      table = @row_set.tables.find { |one| one.node.equal?(node) }
      rows = rows_of(table.rows)
      links = node.edges.each_index.map { |index| links(table.links[index], rows) }
      rows.each_with_index.to_h { |row, number| [row[0].to_s, object(node, table, row, number, links)] }
    end
  end

  def object(node, table, row, number, links)
    values = node.members.each_with_index.to_h { |member, index| [member.attribute.key, value(table, member, index, row, number)] }
    node.edges.each_with_index { |edge, index| values[edge.relationship.key] = related(edge, links[index][row[0].to_s] || []) }
    { "id" => row[0].to_s, **values }
  end

  def related(edge, ids)
    found = edge.node ? ids.map { |id| objects(edge.node)[id] } : ids
    edge.relationship.to_many? ? found : found.first
  end

  def value(table, member, index, row, number)
    computed = table.computed[index]
    return JSON.parse(computed[number]) if computed

    position = member.positions.first
    row[position].nil? ? nil : read(table.coders[position], row[position])
  end

  def read(coder, value)
    case coder
    when :integer then Integer(value)
    when :boolean then [true, 1, "t", "1"].include?(value)
    when :float then Float(value)
    when :decimal then BigDecimal(value).to_s("F")
    when :datetime then (value.is_a?(String) ? Time.parse("#{value} UTC") : value).utc.iso8601(3)
    when :json then JSON.parse(value)
    else value.to_s.dup.force_encoding("UTF-8")
    end
  end

  def links(link, rows)
    return rows.to_h { |row| [row[0].to_s, row[link.position].to_s.split(",")] } if link.is_a?(Castellan::Plan::RowSet::InColumn)

    link = link.pairs if link.is_a?(Castellan::Plan::RowSet::Lists)
    rows_of(link.rows).group_by { |row| row[link.parent_position].to_s }
                      .transform_values { |pairs| pairs.map { |row| row[link.related_position].to_s } }
  end

  def rows_of(rows)
    rows.is_a?(Array) ? rows : rows.values
  end
end
