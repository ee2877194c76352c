# frozen_string_literal: true

# Streams users with their clubs and discards the bytes: `ruby stream_program.rb USERS [url]`.
# Prints the peak memory above that of one user (KB), the bytes, and the milliseconds.
require "active_record"
require "castellan"

users = Integer(ARGV.fetch(0))
ActiveRecord::Base.establish_connection(ARGV[1] || { adapter: "sqlite3", database: ":memory:" })
connection = ActiveRecord::Base.connection
count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000) SELECT n FROM c"
[["users", "email varchar(60)"], ["clubs", "name varchar(60)"], ["memberships", "user_id bigint, club_id bigint"]].each do |table, columns|
  connection.execute("CREATE TEMPORARY TABLE #{table} (id integer PRIMARY KEY, #{columns})")
end
connection.execute("INSERT INTO users (id, email) SELECT n, 'user.number.' || n || '@example.org' FROM (#{count}) series")
connection.execute("INSERT INTO clubs (id, name) SELECT n, 'Club ' || n FROM (#{count}) series")
connection.execute("INSERT INTO memberships (id, user_id, club_id) SELECT n, n, n % 20000 + 1 FROM (#{count}) series")
connection.execute("CREATE INDEX membership_users ON memberships (user_id)")

class Club < ActiveRecord::Base; end

class Membership < ActiveRecord::Base
  belongs_to :club
end

class User < ActiveRecord::Base
  has_many :memberships
  has_many :clubs, through: :memberships
end

class ClubResource < Castellan::Resource
  model Club
  attributes :name
end

class UserResource < Castellan::Resource
  model User
  attributes :email
  has_many :clubs
end

def stream(users)
  bytes = 0
  UserResource.document(User.where(id: ..users), include: "clubs").stream.each { |piece| bytes += piece.bytesize }
  bytes
end

def peak = File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i

stream(1)
GC.start
File.write("/proc/self/clear_refs", "5") # resets the peak
before = peak
started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
bytes = stream(users)
puts "#{peak - before} #{bytes} #{((Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000).round(1)}"
