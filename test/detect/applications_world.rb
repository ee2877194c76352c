# frozen_string_literal: true

require "test_helper"
require "active_record"
require "castellan/detect"

# Models in the style of Redmine (projects, versions, issues, journals), Spree (taxonomies, products,
# variants, prices, images) and Solidus (stock items), in their own SQLite.
module ApplicationsWorld
  DIRECTORY = Dir.mktmpdir("castellan-applications")
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class Base < ActiveRecord::Base
    self.abstract_class = true
    self.table_name_prefix = "apps_"
    establish_connection(adapter: "sqlite3", database: File.join(DIRECTORY, "applications.sqlite3"), pool: 20)
  end

  class Principal < Base
    has_many :members, foreign_key: :user_id
    scope :active, -> { where(status: 1) }
  end

  class User < Principal
  end

  class Group < Principal
  end

  class Project < Base
    has_many :versions
    has_many :members
    has_many :principals, through: :members
    has_many :users, through: :members, source: :principal
    has_many :issues
    has_many :notes, as: :noteable

    def shared_versions = Version.where("apps_versions.project_id IS NULL OR apps_versions.project_id = ?", id)
    def own_or_system_wide = versions.or(Version.where(sharing: "system"))
    def member_users = users.where(apps_members: { admin: true }).to_a
  end

  class Member < Base
    belongs_to :project
    belongs_to :principal, foreign_key: :user_id
  end

  class Version < Base
    belongs_to :project, optional: true
    scope :newest, ->(count) { order(id: :desc).limit(count) }
    def self.two = limit(2)
  end

  class Tracker < Base
  end

  class Issue < Base
    belongs_to :project
    belongs_to :tracker
    belongs_to :author, class_name: "ApplicationsWorld::User"
    has_many :journals
    has_many :notes, as: :noteable
    has_many :files
    has_one :cover, -> { where(place: 1) }, class_name: "ApplicationsWorld::File"

    def title = "#{tracker.name} ##{id}"
  end

  class Note < Base
    belongs_to :noteable, polymorphic: true
  end

  # Deleted softly, and with subclasses of one table.
  class File < Base
    default_scope { where(deleted_at: nil) }
  end

  class Picture < File
  end

  class Film < File
  end

  class Journal < Base
    belongs_to :issue
    has_many :details

    def title = issue.title
  end

  class Detail < Base
    belongs_to :journal
    scope :visible, -> { where(prop_key: "status") }
  end

  class Taxonomy < Base
    has_one :root, -> { where(parent_id: nil) }, class_name: "ApplicationsWorld::Taxon"
  end

  class Taxon < Base
    has_many :children, -> { order(:position) }, class_name: "ApplicationsWorld::Taxon", foreign_key: :parent_id

    def names = [name, children.map(&:name)]
  end

  class Product < Base
    has_many :variants
    def self.listed = order(:id).to_a
  end

  class Variant < Base
    belongs_to :product
    has_many :prices
    has_many :images, -> { order(:position) }
    has_many :stock_items

    def price_in(currency)
      return prices.detect { |price| price.currency == currency } if prices.loaded?

      prices.find_by(currency: currency)
    end
  end

  class Price < Base
    belongs_to :variant
  end

  class Image < Base
    belongs_to :variant
  end

  class StockItem < Base
    belongs_to :variant
    belongs_to :stock_location
  end

  class StockLocation < Base
  end

  Base.connection.instance_eval do
    create_table(:apps_principals) { |t| [t.string(:type), t.string(:name), t.integer(:status, default: 1)] }
    create_table(:apps_projects) { |t| t.string(:name) }
    create_table(:apps_members) { |t| [t.integer(:project_id), t.integer(:user_id), t.boolean(:admin, default: false)] }
    create_table(:apps_versions) { |t| [t.integer(:project_id), t.string(:sharing), t.string(:status), t.integer(:rank)] }
    create_table(:apps_trackers) { |t| t.string(:name) }
    create_table(:apps_issues) { |t| [t.integer(:project_id), t.integer(:tracker_id), t.integer(:author_id)] }
    create_table(:apps_files) { |t| [t.integer(:issue_id), t.string(:type), t.integer(:place, default: 0), t.datetime(:deleted_at)] }
    create_table(:apps_notes) { |t| [t.string(:noteable_type), t.integer(:noteable_id)] }
    create_table(:apps_journals) { |t| [t.integer(:issue_id), t.boolean(:private_notes, default: false)] }
    create_table(:apps_details) { |t| [t.integer(:journal_id), t.string(:prop_key)] }
    create_table(:apps_taxonomies) { |t| t.string(:name) }
    create_table(:apps_taxons) { |t| [t.integer(:taxonomy_id), t.integer(:parent_id), t.integer(:position), t.string(:name)] }
    create_table(:apps_products) { |t| t.string(:name) }
    create_table(:apps_variants) { |t| t.integer(:product_id) }
    create_table(:apps_prices) { |t| [t.integer(:variant_id), t.string(:currency), t.integer(:cents)] }
    create_table(:apps_images) { |t| [t.integer(:variant_id), t.integer(:position)] }
    create_table(:apps_stock_items) { |t| [t.integer(:variant_id), t.integer(:stock_location_id)] }
    create_table(:apps_stock_locations) { |t| t.string(:name) }
  end

  user = User.create!(name: "user")
  Version.create!(sharing: "system", status: "open")
  trackers = %w[bug feature].map { |name| Tracker.create!(name: name) }
  5.times do |number|
    project = Project.create!(name: "project #{number}")
    Member.create!(project: project, principal: user, admin: true)
    Member.create!(project: project, principal: Group.create!(name: "group"))
    2.times { |rank| Version.create!(project: project, sharing: "none", status: rank.zero? ? "open" : "closed", rank: rank) }
    issue = Issue.create!(project: project, tracker: trackers[number % 2], author: user)
    [project, issue].each { |noteable| Note.create!(noteable: noteable) }
    [Picture, Film, Film].each { |kind| kind.create!(issue_id: issue.id) }
    journal = Journal.create!(issue: Issue.create!(project: project, tracker: trackers[number % 2], author: user))
    Journal.create!(issue: issue, private_notes: true)
    2.times { |key| Detail.create!(journal: journal, prop_key: key.zero? ? "status" : "notes") }

    variant = Variant.create!(product: Product.create!(name: "product #{number}"))
    %w[USD EUR].each { |currency| Price.create!(variant: variant, currency: currency, cents: number) }
    2.times { |position| Image.create!(variant: variant, position: 2 - position) }
    StockItem.create!(variant: variant, stock_location: StockLocation.create!(name: "here"))
    next if number > 2

    taxonomy = Taxonomy.create!(name: "taxonomy")
    root = Taxon.create!(taxonomy_id: taxonomy.id, name: "root")
    2.times do |position|
      child = Taxon.create!(parent_id: root.id, taxonomy_id: taxonomy.id, position: position, name: "child")
      2.times { |further| Taxon.create!(parent_id: child.id, taxonomy_id: taxonomy.id, position: further, name: "leaf") }
    end
  end
end
