# frozen_string_literal: true

require "date"

# The rows of the mail log example: the same for the same multiplier, on every machine and database.
#
#   Seeds.new(Sequel.connect("sqlite:///data/mail_logs.sqlite3"), multiplier: 1).insert # 12 categories, 250 companies, 5,000 mail logs
#
# The multiplier scales companies and mail logs. Numbers are unique but not in the order of the ids, because
# letters are numbered when they are opened; a tenth of the optional values is null; the last company has no
# letter.
class Seeds
  COMPANIES = 250
  MAIL_LOGS = 5_000
  BATCH = 500
  STAMP = Time.utc(2018, 1, 2, 8)
  FIRST_DAY = Date.new(2015, 1, 5)
  CATEGORIES = ["Invoice", "Reminder", "Contract", "Offer", "Order confirmation", "Delivery note", "Insurance", "Tax office",
                "Authorities", "Bank statement", "Complaint", "Other correspondence"].freeze
  NAMES = %w[Alder Birch Cedar Dogwood Elm Fir Gorse Hazel Ivy Juniper Larch Maple Nettle Oak Poplar Rowan Spruce Thorn Willow Yew].freeze
  TRADES = ["Logistics", "& Sons", "Office Supplies", "Engineering", "Printing Works", "Insurance", "Consulting", "Energy"].freeze
  FORMS = ["Ltd", "GmbH", "AG", "S.r.l.", "d.o.o.", "Öffentliche Körperschaft"].freeze
  PHRASES = ["Forwarded to accounting.", "Please pay before the end of the month.", "Second copy, the first one was lost.",
             "Signed and sent back by registered mail.", "See the e-mail of the same day.", "Attached: three pages, scanned.",
             "The sum differs from the offer; asked for a correction.", "Rücksprache mit Frau Müller nötig.",
             "Filed \"as is\" <no action>."].freeze

  attr_reader :multiplier

  def initialize(database, multiplier:)
    @database = database
    @multiplier = multiplier
    @random = Random.new(20_180_102)
  end

  def insert
    insert_into(:categories, categories)
    insert_into(:companies, companies)
    insert_into(:mail_logs, mail_logs)
  end

  private

  def insert_into(table, rows)
    columns = [*rows.first.keys, :created_at, :updated_at]
    rows.each_slice(BATCH) { |slice| @database[table].import(columns, slice.map { |row| [*row.values, STAMP, STAMP] }) }
  end

  def categories
    CATEGORIES.map { |name| { name: name } }
  end

  def companies
    (1..COMPANIES * multiplier).map do |number|
      name = "#{pick(NAMES)} #{pick(TRADES)} #{pick(FORMS)}"
      { name: name, icon: sometimes { "/icons/#{name.downcase.gsub(/[^a-z]+/, "-")}-#{number}.svg" } }
    end
  end

  def mail_logs
    numbers.map.with_index { |number, index| mail_log(number, FIRST_DAY + (index / (4 * multiplier))) }
  end

  # Shuffled within fifties: a later letter can have a lower number, but not by much.
  def numbers
    (1..MAIL_LOGS * multiplier).each_slice(50).flat_map { |slice| slice.shuffle(random: @random) }
  end

  def mail_log(number, day)
    cents = @random.rand(500..2_500_000)
    valued = @random.rand(10).positive?
    { number: number, in_or_out: @random.rand(3).zero? ? "out" : "in", document_date_on: sometimes { day - @random.rand(1..9) },
      received_on: day, external_number: sometimes { external_number(day) }, comment: sometimes { comment },
      value_net: (decimal(cents) if valued), value_vat: (decimal(cents * 22 / 100) if valued),
      category_id: @random.rand(1..CATEGORIES.size), company_id: @random.rand(1...COMPANIES * multiplier) }
  end

  def external_number(day)
    format("%<prefix>s-%<year>d/%<serial>06d", prefix: pick(%w[RE INV AB 4500]), year: day.year, serial: @random.rand(1_000_000))
  end

  def comment
    Array.new(@random.rand(1..5)) { pick(PHRASES) }.join(" ")
  end

  def decimal(cents)
    BigDecimal(cents) / 100
  end

  def sometimes
    yield if @random.rand(10).positive?
  end

  def pick(values)
    values.sample(random: @random)
  end
end
