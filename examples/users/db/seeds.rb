# frozen_string_literal: true

# Inserts the same rows each time, in bulk. Ids ascend with those of the parents. With MULTIPLIER=n, n times
# 162 users match `?role=Administrator,Manager`, and half as many do not match; with USERS=n, exactly n users
# match.
class Seeds
  IN_ANSWER = 162
  FILTERED = %w[Administrator Manager].freeze
  TITLES = (FILTERED + %w[Analyst Auditor Designer Developer Editor Operator Planner Reviewer Supporter Trainer]).freeze
  GROUPS = %w[Accounting Archive Buying Canteen Claims Contracts Customs Dispatch Export Facilities Fleet Import Law Logistics
              Marketing Payroll Planning Press Quality Recruiting Research Safety Sales Training Warehouse].freeze
  FIRST_NAMES = %w[Ada Alan Barbara Bjarne Carol Dana Donald Edsger Frances Grace Hedy Ines Jean John Karen Ken Lois Margaret
                   Niklaus Ole Radia Rosza Sophie Tony Yukihiro].freeze
  LAST_NAMES = %w[Allen Bartik Dahl Dijkstra Hamilton Hoare Hopper Jones Keller Kernighan Knuth Lamarr Liskov Lovelace Matsumoto
                  Perlman Péter Ritchie Shaw Stroustrup Thompson Turing Ulbrich Wilson Wirth].freeze
  NOW = Time.utc(2024, 3, 1, 12)
  BATCH = 2_000

  # Identifies these seeds in the database.
  def self.fingerprint
    "users #{in_answer}"
  end

  def self.in_answer
    Integer(ENV.fetch("USERS") { IN_ANSWER * Integer(ENV.fetch("MULTIPLIER", "1")) })
  end

  def initialize
    @random = Random.new(20_240_301)
    @rows = Hash.new { |rows, model| rows[model] = [] }
  end

  def call
    TITLES.each { |title| add Role, title: title }
    GROUPS.each { |name| add Group, name: name }
    (self.class.in_answer * 3 / 2.0).ceil.times { |index| add_user(index) }
    @rows.each { |model, rows| rows.each_slice(BATCH) { |batch| model.insert_all!(batch) } }
  end

  private

  def add_user(index)
    first_name, last_name = FIRST_NAMES.sample(random: @random), LAST_NAMES.sample(random: @random)
    email = "#{first_name}.#{last_name}.#{index + 1}@example.org".downcase.tr("é", "e")
    user_id = add(User, email: email, first_name: first_name, last_name: last_name)
    add_assignments(user_id, index % 3 != 2)
    add_group_assignments(user_id)
    add Employee, user_id: user_id, number: format("E%06d", user_id), department: GROUPS.sample(random: @random) if rand(100) < 85
    add_tokens(user_id, index)
  end

  # A quarter of the matching users have both roles. All users have other roles, too.
  def add_assignments(user_id, in_answer)
    filtered = in_answer ? [[0], [1], [1], [0, 1]].sample(random: @random) : []
    others = (2...TITLES.size).to_a.sample(1 + rand(3), random: @random)
    (filtered + others).sort.each { |index| add Assignment, user_id: user_id, role_id: index + 1, direct: rand(100) < 70 }
  end

  def add_group_assignments(user_id)
    (1..GROUPS.size).to_a.sample(1 + rand(4), random: @random).sort.each do |group_id|
      add GroupAssignment, user_id: user_id, group_id: group_id, since: NOW.to_date - rand(2_000)
    end
  end

  # About five per user, and none for every tenth user. The newest one was often used by a supporter.
  def add_tokens(user_id, index)
    return if index % 10 == 9

    count = 3 + rand(6)
    used_at = NOW - (400 + rand(200)).days
    count.times do |number|
      used_at += rand(1..(60 * 86_400)) + Rational(rand(1_000_000), 1_000_000)
      add AuthenticationToken, user_id: user_id, last_used_at: used_at, on_behalf: rand(100) < (number == count - 1 ? 60 : 20)
    end
  end

  def add(model, **attributes)
    rows = @rows[model]
    rows << { id: rows.size + 1, **attributes, created_at: NOW, updated_at: NOW }
    rows.size
  end

  def rand(limit)
    @random.rand(limit)
  end
end
