# frozen_string_literal: true

require "active_record"
require "tmpdir"

module Benchmarks
  # Opens the database and loads the models of an example application, without the application itself.
  #
  #   Example.new("users", "USERS" => "1000").open("postgres://…") { User.count }   # an empty database; nil: SQLite in a file
  #
  # Models become top-level constants, so use one example per process. Times are as in a Rails application:
  # UTC, with time zones.
  class Example
    ROOT = File.expand_path("../../examples", __dir__)

    # @param size [Hash{String => String}] environment variables for the seeds
    def initialize(name, size = {})
      @dir = File.join(ROOT, name)
      @size = { "USERS" => nil, "MULTIPLIER" => nil }.merge(size)
    end

    # @return [String]
    def to_s
      [File.basename(@dir), *@size.compact.map { |name, value| "#{name}=#{value}" }].join(" ")
    end

    # @param url [String, nil]
    # @return the result of the block
    def open(url)
      Dir.mktmpdir("castellan-bench-") do |dir|
        connect(url || { adapter: "sqlite3", database: File.join(dir, "bench.sqlite3") })
        load_models
        seed
        yield
      ensure
        ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
      end
    end

    # Autoloads the constants of the files in these folders. `app/serializers/fast/` becomes the module Fast.
    def load(*folders)
      folders.flat_map { |folder| Dir[File.join(@dir, folder, "*.rb")] }.each { |file| autoload(file) }
    end

    private

    def connect(database)
      ActiveRecord::Base.establish_connection(database)
      ActiveRecord::Base.logger = nil
      ActiveRecord::Base.time_zone_aware_attributes = true
      Time.zone_default = Time.find_zone!("UTC")
    end

    def load_models
      load("app/models")
    end

    # Like in Rails, the first reference to the constant loads the file.
    def autoload(file)
      below = file[%r{/app/\w+/(\w+)/\w+\.rb\z}, 1]
      namespace = below ? namespace(camelize(below)) : Object
      namespace.autoload(camelize(File.basename(file, ".rb")), file)
    end

    def namespace(name)
      Object.const_defined?(name) ? Object.const_get(name) : Object.const_set(name, Module.new)
    end

    def camelize(name)
      name.split("_").map(&:capitalize).join
    end

    def seed
      ENV.update(@size)
      ActiveRecord::Migration.suppress_messages { Kernel.load(File.join(@dir, "db/schema.rb")) }
      Kernel.load(File.join(@dir, "db/seeds.rb"))
      connection = ActiveRecord::Base.connection
      connection.transaction { ::Seeds.new.call }
      connection.tables.each { |table| connection.execute("ANALYZE #{connection.quote_table_name(table)}") }
    end
  end
end
