# frozen_string_literal: true

# Profiles Castellan's time and objects, for 1,000 users, one user, the attributes of one user, or 100 posts.
#
#   ruby benchmark/serialize/profile.rb users                # on SQLite; or: one, attributes, posts
#   ruby benchmark/serialize/profile.rb users postgres
#
# Lists objects by source line, and time by the samples of stackprof. Both slow the program down, so the
# figures are no measurement.
require_relative "../support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require_relative "../../test/support/servers"
require_relative "../support/example"
require "active_support/all"
require "castellan"
require "objspace"
require "stackprof"

class SerializeProfile
  WORKS = {
    "users" => ["users", -> { UserResource.render(User.holding(%w[Administrator Manager]), include: %i[roles groups]) }],
    "one" => ["users", -> { UserResource.render(id: 7, include: %i[roles groups]) }],
    "attributes" => ["users", -> { AccountResource.render(id: 7) }],
    "posts" => ["posts", -> { PostResource.render(Post.listed.limit(100), include: %i[author comments]) }]
  }.freeze
  SHOWN = 25
  SECONDS = 4

  def initialize(work = "users", database = "sqlite")
    @example, @render = WORKS.fetch(work) { abort "There is no #{work.inspect}: write one of #{WORKS.keys.join(", ")}." }
    @url = Castellan::TestServers.postgres_url if database == "postgres"
  end

  def run
    example = Benchmarks::Example.new(@example, "USERS" => "1000")
    example.open(@url) do
      example.load("castellan_steps")
      require_relative "account_resource" if @example == "users"
      3.times { @render.call }
      objects
      time
    end
  end

  private

  def objects
    lines = traced
    puts "#{lines.values.sum} objects of one call, by line:"
    lines.sort_by { |_, count| -count }.first(SHOWN).each { |line, count| puts format("%8d  %s", count, line) }
  end

  # Without GC, so that all objects are counted.
  def traced
    GC.start
    GC.disable
    generation = GC.count
    ObjectSpace.trace_object_allocations { @render.call }
    ObjectSpace.each_object.filter_map { |object| line(object) if ObjectSpace.allocation_generation(object) == generation }.tally
  ensure
    GC.enable
  end

  def line(object)
    file = ObjectSpace.allocation_sourcefile(object)&.sub(%r{.*/(gems|castellan)/}, "")
    "#{file}:#{ObjectSpace.allocation_sourceline(object)} #{object.class}"
  end

  def time
    profile = StackProf.run(mode: :wall, interval: 500) { once until over? }
    puts "", "Time by method:"
    StackProf::Report.new(profile).print_text(false, SHOWN)
    puts "", "Time by method and what it calls:"
    StackProf::Report.new(profile).print_text(true, SHOWN * 2)
  end

  def once
    @render.call
  end

  def over?
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    now > (@deadline ||= now + SECONDS)
  end
end

SerializeProfile.new(*ARGV.first(2)).run
