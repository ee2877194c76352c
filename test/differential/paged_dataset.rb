# frozen_string_literal: true

require "sequel"

# Creates a model of Sequel in its own database, and a resource with pages of two that sorts by its last
# column.
#
#   include PagedDataset
#   def create = @database.create_table(:letters) { … }   # and inserts its rows
#   def model = Class.new(Sequel::Model(@database[:letters]))
#   ids(@model.order(:id), sort: "subject")               # => ["6", "5"]
module PagedDataset
  def setup
    @database = Sequel.sqlite
    create
    @model = model
    @resource = paged(@model)
  end

  def teardown
    @database.disconnect
  end

  private

  def paged(source)
    Class.new(Castellan::Resource) do
      model source
      type source.table_name
      attributes source.columns.last
      sort source.columns.last
      page size: 2, max_size: 9, count: true
    end
  end

  def ids(scope, **asked) = JSON.parse(@resource.render(scope, **asked))["data"].map { |object| object["id"] }

  def streamed(scope)
    whole = Class.new(Castellan::Resource)
    whole.model(@model)
    whole.type(@model.table_name)
    JSON.parse(whole.document(scope).stream.each.to_a.join)["data"].map { |object| object["id"] }
  end

  # Returns the ids of the first pages.
  def pages(scope, number) = (1..number).flat_map { |page| ids(scope, page: { number: page }) }
end
