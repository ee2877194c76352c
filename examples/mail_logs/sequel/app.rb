# frozen_string_literal: true

require "json"
require "roda"
require_relative "../shared/bearer_token"
require_relative "models"
require_relative "page"
require_relative "serializers"

# Mail logs as JSON:API with Roda, Sequel and jsonapi-serializer: the same documents as the Rails app.
#
#   PORT=9293 bundle exec puma -C config/puma.rb
#   curl -g -H "Authorization: Bearer $(../bin/token)" 'http://127.0.0.1:9293/mail-logs?include=category,company&page[number]=2'
#
# Read-only. `sort`, `filter` and `fields` are a 400, so that they are not ignored silently. LOG_LEVEL=debug
# shows the SQL.
class MailLogsApp < Roda
  MEDIA_TYPE = "application/vnd.api+json"
  RELATIONSHIPS = %w[category company].freeze

  plugin :Integer_matcher_max # 404 for an id that exceeds the integers of the database
  plugin :default_headers, "content-type" => MEDIA_TYPE
  plugin :not_found do
    problem(404, "Record not found", "There is nothing at #{request.path}.")
  end
  plugin :error_handler, classes: [BearerToken::Invalid, Page::Invalid, Rack::BadRequest] do |error|
    case error
    when BearerToken::Invalid then unauthorized(error)
    when Page::Invalid then problem(400, "Invalid parameter", error.message, source: { parameter: error.parameter })
    else problem(400, "Invalid query", "The query string cannot be read.")
    end
  end

  route do |r|
    BearerToken.claims(env["HTTP_AUTHORIZATION"])
    refuse_unsupported(r.params)

    r.get "mail-logs", Integer do |id|
      one(MailLogSerializer, MailLog[id], RELATIONSHIPS)
    end

    r.get "mail-logs" do
      page_of(MailLogSerializer, MailLog.newest_first, RELATIONSHIPS)
    end

    r.get "company-statistics", Integer do |id|
      one(CompanyStatisticSerializer, CompanyStatistic[id], [])
    end

    r.get "company-statistics" do
      page_of(CompanyStatisticSerializer, CompanyStatistic.by_company, [])
    end
  end

  private

  def one(serializer, record, relationships)
    record && document(serializer, record, include: included(relationships))
  end

  def page_of(serializer, dataset, relationships)
    page = Page.new(request.params["page"])
    include = included(relationships)
    records = dataset.paginate(page.number, page.size)
    count = records.pagination_record_count
    links = page.links(count) { |number| address(page, number) }
    document(serializer, records.all, include: include, meta: { "record-count" => count }, links: links)
  end

  def document(serializer, records, options)
    hash = serializer.new(records, options).serializable_hash
    hash[:included]&.sort_by! { |resource| [resource[:type], resource[:id].to_i] } # the same order as jsonapi-resources
    JSON.generate(hash)
  end

  def included(relationships)
    names = request.params.fetch("include", "")
    raise Page::Invalid.new("include", "include takes names with commas between them.") unless names.is_a?(String)

    unknown = names.split(",") - relationships
    return names.split(",") if unknown.empty?

    raise Page::Invalid.new("include", "#{unknown.first} cannot be included here, only: #{relationships.join(", ")}.")
  end

  def refuse_unsupported(params)
    name = (%w[sort filter fields] & params.keys).first
    raise Page::Invalid.new(name, "#{name} is not supported here.") if name
  end

  def address(page, number)
    query = { include: request.params["include"], page: { number: number, size: page.size } }.compact
    "#{request.base_url}#{request.path}?#{Rack::Utils.build_nested_query(query)}"
  end

  def unauthorized(invalid)
    response.status = 401
    response["www-authenticate"] = BearerToken::CHALLENGE
    BearerToken.error_document(invalid)
  end

  def problem(status, title, detail, **more)
    response.status = status
    JSON.generate(errors: [{ status: status.to_s, title: title, detail: detail, **more }])
  end
end
