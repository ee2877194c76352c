# frozen_string_literal: true

require "active_record"
require "active_support/cache"
require "alba"
require "castellan"
require "oj"

module Benchmarks
  # Cached documents of letters with ActiveRecord and PostgreSQL: public, per viewer, and with a flag per
  # viewer.
  # All ways find the viewer by a token with the same method.
  class Letters
    TYPE = "application/vnd.api+json"
    VIEWERS = 20
    LETTERS = 100 # per viewer
    FLAGGED = 100 # letters in a document with flags
    CASTELLAN = "Castellan.app"
    NOTIFIED = "Castellan.app, cache :notified"
    VERSIONED = "Castellan.app, version:"
    BOTH_NAMED = "Castellan.app, cache :notified, version:"
    VERSION = "a lambda: the version's statement, constant bytes"
    BOTH = "a lambda: look-up, the version's statement, constant bytes"
    CONSTANT = "a lambda: constant bytes"
    LOOK_UP = "a lambda: look-up, constant bytes"
    LOOK_UP_304 = "a lambda: look-up, 304"
    BOTH_304 = "a lambda: look-up, the version's statement, 304"
    FLAGS_304 = "a lambda: look-up, the version's statement, the flags' query, 304"
    ALBA = "Rails.cache.fetch of Alba's hashes, one query for the flags"

    class Viewer < ActiveRecord::Base
      has_many :letters, class_name: "Benchmarks::Letters::Letter"
      has_many :readings, class_name: "Benchmarks::Letters::Reading"

      def self.of(env)
        token = env["HTTP_AUTHORIZATION"]&.delete_prefix("Bearer ")
        token && find_by(token: token)
      end
    end

    class Letter < ActiveRecord::Base
    end

    class Reading < ActiveRecord::Base
    end

    class AlbaLetter
      include Alba::Resource

      attributes :id, :number, :title, :body, :amount, :sent_on
    end

    # @param url [String] the URL of an empty PostgreSQL database
    def initialize(url)
      ActiveRecord::Base.establish_connection(url)
      ActiveRecord::Base.logger = nil
      ActiveRecord::Base.time_zone_aware_attributes = true
      Time.zone_default = Time.find_zone!("UTC")
      ActiveRecord::Migration.suppress_messages { create }
      fill
      notified = Castellan::Versions::NotifiedVersions.new(ActiveRecord::Base)
      notified.install(%w[benchmarks_letters benchmarks_readings])
      @versions = notified.exact
      Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: notified)
      @token = Viewer.first.token
      declare
    end

    # @return [Array<Contest>]
    def contests
      [for_everybody, for_the_viewer, flagged, not_modified, not_modified_flagged]
    end

    private

    def create
      ActiveRecord::Schema.define do
        create_table(:benchmarks_viewers) do |table|
          table.string :name, :token
          table.integer :readings_version, default: 0
          table.index :token, unique: true
        end
        create_table(:benchmarks_letters) do |table|
          table.bigint :viewer_id
          table.integer :number
          table.string :title
          table.text :body
          table.decimal :amount, precision: 10, scale: 2
          table.date :sent_on
          table.timestamps
          table.index %i[viewer_id number]
        end
        create_table(:benchmarks_readings) do |table|
          table.bigint :viewer_id, :letter_id
          table.index %i[viewer_id letter_id], unique: true
        end
      end
      { Viewer => "viewers", Letter => "letters", Reading => "readings" }.each { |model, name| model.table_name = "benchmarks_#{name}" }
    end

    def fill
      Viewer.insert_all!((1..VIEWERS).map { |number| { name: "Viewer #{number}", token: "token-#{number}-#{"x" * 20}" } })
      ids = Viewer.order(:id).ids
      Letter.insert_all!((0...(VIEWERS * LETTERS)).map { |number|
        { viewer_id: ids[number % VIEWERS], number: number, title: "Letter #{number} of the year", body: "Dear reader, " * 12,
          amount: BigDecimal(number) / 4, sent_on: Date.new(2026, 1, 1) + (number % 300) }
      })
      Reading.insert_all!(Letter.order(:id).limit(FLAGGED).ids.each_slice(3).map { |(id)| { viewer_id: ids.first, letter_id: id } })
      ActiveRecord::Base.connection.execute("ANALYZE")
    end

    def declare
      letters = Class.new(Castellan::Resource) do
        model Letter
        type "letters"
        attributes :number, :title, :body, :amount, :sent_on
        sort :number, default: "number"
        page size: 20, max_size: FLAGGED
        cache :exact
      end
      @letters = self.class.const_set(:LetterResource, letters)
      @notified = self.class.const_set(:NotifiedResource, Class.new(letters) { cache :notified })
      @flagged = self.class.const_set(:FlaggedResource, Class.new(letters) do
        format :nested
        per_viewer(:read) { |ids, viewer| viewer.readings.where(letter_id: ids).pluck(:letter_id) }
      end)
      @versioned = self.class.const_set(:VersionedResource, Class.new(letters) do
        format :nested
        per_viewer(:read, version: :readings_version.to_proc) { |ids, viewer| viewer.readings.where(letter_id: ids).pluck(:letter_id) }
      end)
      @both_named = self.class.const_set(:BothNamedResource, Class.new(@versioned) { cache :notified })
    end

    def app(resource, private: true, **options)
      Castellan.app do
        authenticate { |env| Viewer.of(env) } if private
        resource resource, at: "letters", **options
      end
    end

    def for_everybody
      app = app(@letters, private: false)
      asking = constant(app) { version }
      entries = [entry(CASTELLAN, app), entry(NOTIFIED, app(@notified, private: false)), entry(CONSTANT, constant(app)),
                 entry(VERSION, asking)]
      Contest.new("20 letters, kept for everybody", entries)
    end

    def for_the_viewer
      exact, notified = [@letters, @notified].map { |resource| app(resource, scope: ->(viewer) { viewer.letters }) }
      looking_up = constant(exact) { |env| Viewer.of(env) }
      both = constant(exact) { |env| Viewer.of(env) && version }
      Contest.new("20 letters, kept for their viewer",
                  [entry(CASTELLAN, exact), entry(NOTIFIED, notified), entry(LOOK_UP, looking_up), entry(BOTH, both)])
    end

    def flagged
      cache = ActiveSupport::Cache::MemoryStore.new
      alba = lambda do |env|
        viewer = Viewer.of(env)
        scope = Letter.order(:number, :id).limit(FLAGGED)
        letters = cache.fetch(scope) { AlbaLetter.new(scope).to_h } # Rails' key of a relation: one query for its count and latest time
        read = viewer.readings.where(letter_id: letters.map { |letter| letter["id"] }).pluck(:letter_id).to_set
        body = Oj.dump(letters.map { |letter| letter.merge("read" => read.include?(letter["id"])) }, mode: :rails)
        [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
      end
      Contest.new("100 letters with a flag of the viewer", [entry(CASTELLAN, app(@flagged), flagged_path), entry(ALBA, alba, flagged_path)])
    end

    def flagged_path
      "/letters?page[size]=#{FLAGGED}".gsub("[", "%5B").gsub("]", "%5D")
    end

    def not_modified
      exact, notified = [@letters, @notified].map { |resource| app(resource, scope: ->(viewer) { viewer.letters }) }
      Contest.new("304 of 20 letters", [unchanged(CASTELLAN, exact), unchanged(NOTIFIED, notified),
                                        not_modified_by(LOOK_UP_304, exact), not_modified_by(BOTH_304, exact) { version }], status: 304)
    end

    def not_modified_flagged
      flagged = app(@flagged)
      ids = Letter.order(:number, :id).limit(FLAGGED).ids
      flags = ->(viewer) { version && viewer.readings.where(letter_id: ids).pluck(:letter_id) }
      entries = { CASTELLAN => @flagged, VERSIONED => @versioned, BOTH_NAMED => @both_named }.map do |name, resource|
        unchanged(name, app(resource), flagged_path)
      end
      lambdas = [not_modified_by(LOOK_UP_304, flagged, flagged_path), not_modified_by(BOTH_304, flagged, flagged_path) { version },
                 not_modified_by(FLAGS_304, flagged, flagged_path, &flags)]
      Contest.new("304 of 100 letters with a flag of the viewer", entries + lambdas, status: 304)
    end

    # Sends the entity tag that the application returned.
    def unchanged(name, app, path = "/letters")
      entry(name, app, path, "If-None-Match" => etag_of(app, path))
    end

    # Sends the header fields of the application's 304, after a lookup and after the block.
    def not_modified_by(name, app, path = "/letters")
      asked = unchanged(name, app, path)
      _, fields, = app.call(asked.env.dup)
      answer = lambda do |env|
        viewer = Viewer.of(env) or next [401, {}, []]
        yield viewer if block_given?
        [304, fields.dup, []]
      end
      Contest::Entry.new(name, answer, path, asked.headers)
    end

    def etag_of(app, path)
      app.call(Contest::Entry.new("", app, path, headers).env)[1].fetch("etag")
    end

    # Sends the bytes that the application returned once.
    def constant(app)
      status, fields, body = app.call(Contest::Entry.new("", app, "/letters", headers).env)
      bytes = +""
      body.each { |some| bytes << some }
      bytes.freeze
      lambda do |env|
        yield env if block_given?
        [status, fields.dup, [bytes]]
      end
    end

    def version
      @versions.current(@dependencies ||= [Castellan::Versions::Dependency.new("benchmarks_letters")])
    end

    def headers
      { "Authorization" => "Bearer #{@token}" }
    end

    def entry(name, app, path = "/letters", **more)
      Contest::Entry.new(name, app, path, headers.merge(more))
    end
  end
end
