# frozen_string_literal: true

# The steps with Castellan, as Rack applications in config.ru. They serve the same requests, with documents
# that the resources declare.
module PostsApi
  WHOLE = %i[author comments].freeze
  TOKEN = /\ABearer (.+)\z/

  def self.viewers
    Castellan.app do
      authenticate { |env| PostsApi.viewer(env["HTTP_AUTHORIZATION"]) }
      resource PostResource, at: "resource", scope: PostsApi.method(:posts_of), include: WHOLE
      resource DocumentCachedPostResource, at: "document", scope: PostsApi.method(:posts_of), include: WHOLE
      resource DocumentCachedPostResource, at: "summary", scope: PostsApi.method(:posts_of), include: :author
      resource PersonalPostResource, at: "fragment", scope: PostsApi.method(:posts_of), include: :author
    end
  end

  # The relation of the front page does not depend on the request, so it is built once.
  def self.everybody(resource = DocumentCachedPostResource, purge: nil)
    front_page = Post.front_page
    Castellan.app do
      resource resource, at: "/", scope: ->(_) { front_page }, include: WHOLE
      purge purge if purge
    end
  end

  # Behind the proxy at PROXY_URL, which asks for a document again after a change of one of its records.
  def self.proxied
    purge = Castellan::Purge.new(ActiveRecord::Base, Castellan::Purge::Refresh.new(ENV.fetch("PROXY_URL")))
    purge.install(ProxiedPostResource)
    purge.start
    at_exit { purge.uninstall(ProxiedPostResource) } # without a process that sends them, notes would pile up
    everybody(ProxiedPostResource, purge: purge)
  end

  def self.viewer(authorization)
    token = authorization.to_s[TOKEN, 1]
    User.joins(:access_tokens).find_by(access_tokens: { digest: AccessToken.digest(token) }) if token
  end

  def self.posts_of(viewer)
    viewer.posts.listed
  end
end
