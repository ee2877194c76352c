# frozen_string_literal: true

module Benchmarks
  # The page of examples/mail_logs, with its count, categories and companies, by five servers.
  #
  # The servers are the two applications of the example, Castellan with both ORMs, and a lambda with prepared
  # statements; all of them check the same token. The two applications have models with the same names, so
  # each needs its own process; the lambda runs in both.
  class MailLogs
    EXAMPLE = File.expand_path("../../examples/mail_logs", __dir__)
    PATH = "/mail-logs?include=category,company"
    TYPE = "application/vnd.api+json"
    HAND = "a lambda, prepared statements and JSON.generate"
    RODA = "Roda, Sequel, jsonapi-serializer"
    RESOURCES = "jsonapi-resources on a slim Rails"
    APP = "Castellan.app"
    RAILS = "Castellan, render json: in Rails"

    # The page, written by hand with only pg.
    class HandWritten
      SIZE = 20
      STATEMENTS = {
        "page" => "SELECT id, number, in_or_out, document_date_on, received_on, external_number, comment, value_net, value_vat, " \
                  "category_id, company_id FROM mail_logs ORDER BY number DESC, id LIMIT $1 OFFSET $2",
        "count" => "SELECT count(*) FROM mail_logs",
        "categories" => "SELECT id, name FROM categories WHERE id = ANY($1::bigint[])",
        "companies" => "SELECT id, name, icon FROM companies WHERE id = ANY($1::bigint[])"
      }.freeze

      def initialize(url)
        @url = url
      end

      def call(env)
        BearerToken.claims(env["HTTP_AUTHORIZATION"])
        page = Rack::Utils.parse_nested_query(env["QUERY_STRING"]).dig("page", "number")&.to_i || 1
        body = JSON.generate(document(connection, page))
        [200, { "content-type" => TYPE, "content-length" => body.bytesize.to_s }, [body]]
      end

      private

      def connection
        Thread.current[:hand_written] ||= PG.connect(@url).tap do |connection|
          STATEMENTS.each { |name, sql| connection.prepare(name, sql) }
        end
      end

      def document(pg, page)
        rows = pg.exec_prepared("page", [SIZE, (page - 1) * SIZE]).values
        total = pg.exec_prepared("count", []).getvalue(0, 0).to_i
        { data: rows.map { |row| mail_log(row) },
          included: included(pg, "categories", rows.map { |row| row[9] }) { |(_, name)| { name: name } } +
            included(pg, "companies", rows.map { |row| row[10] }) { |(_, name, icon)| { name: name, icon: icon } },
          meta: { "record-count": total }, links: links(page, total) }
      end

      def mail_log(row)
        id, number, in_or_out, dated, received, external, comment, net, vat, category, company = row
        { id: id, type: "mail-logs",
          attributes: { number: number.to_i, "in-or-out": in_or_out, "document-date-on": dated, "received-on": received,
                        "external-number": external, comment: comment, "value-net": decimal(net), "value-vat": decimal(vat) },
          relationships: { category: { data: { type: "categories", id: category } },
                           company: { data: { type: "companies", id: company } } } }
      end

      def decimal(text)
        text && BigDecimal(text).to_s("F")
      end

      def included(pg, type, ids)
        rows = pg.exec_prepared(type, ["{#{ids.uniq.join(",")}}"]).values
        rows.map { |row| { id: row[0], type: type, attributes: yield(row) } }
      end

      def links(page, total)
        last = [(total + SIZE - 1) / SIZE, 1].max
        { first: 1, prev: (page - 1 if page > 1), next: (page + 1 if page < last), last: last }
          .transform_values { |number| number && "#{PATH}&page%5Bnumber%5D=#{number}&page%5Bsize%5D=#{SIZE}" }
      end
    end

    # @param url [String] the URL of an empty PostgreSQL database
    def initialize(url)
      @url = url
      ENV["DATABASE_URL"] = url
      ENV.update("WITH_CASTELLAN" => "1", "RAILS_ENV" => "production", "RACK_ENV" => "production")
    end

    # @return [Contest] in a process without ActiveRecord
    def on_sequel
      seed
      require File.join(EXAMPLE, "sequel/app")
      app = MailLogsApp.freeze.app
      ours = entry(APP, castellan)
      Contest.new("20 mail logs with count, category and company, Sequel", [ours, entry(RODA, app), hand_written], own: own_part(ours))
    end

    # @return [Contest] in a process without Sequel, except for the seeds
    def on_rails
      Apart.call { seed }
      require File.join(EXAMPLE, "rails/config/environment")
      require File.join(EXAMPLE, "shared/mail_logs_api")
      rails = Rails.application
      ours = entry(APP, castellan)
      Contest.new("20 mail logs with count, category and company, ActiveRecord",
                  [ours, entry(RAILS, rails, "/castellan#{PATH}"), entry(RESOURCES, rails), hand_written], own: own_part(ours))
    end

    private

    def seed
      require File.join(EXAMPLE, "shared/setup")
      Setup.new.call
    end

    def castellan
      require File.join(EXAMPLE, "shared/bearer_token")
      require File.join(EXAMPLE, "shared/mail_logs_api")
      Castellan.app do
        authenticate(challenge: BearerToken::CHALLENGE) { |env| BearerToken.claims(env["HTTP_AUTHORIZATION"]) }
        resource MailLogsApi::MailLogResource
      end
    end

    def own_part(entry)
      OwnPart.new(entry, hand_written) { |env| BearerToken.claims(env["HTTP_AUTHORIZATION"]) }
    end

    def hand_written
      entry(HAND, HandWritten.new(@url))
    end

    def entry(name, app, path = PATH)
      require File.join(EXAMPLE, "shared/bearer_token")
      token = BearerToken.issue(subject: "1", expires_at: Time.now + 86_400)
      Contest::Entry.new(name, app, path, { "Accept" => TYPE, "Authorization" => "Bearer #{token}" })
    end
  end
end
