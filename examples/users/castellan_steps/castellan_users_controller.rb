# frozen_string_literal: true

# The steps with Castellan: the same requests, with documents that the resources declare.
class CastellanUsersController < ApplicationController
  def resource
    answer_with UserResource
  end

  def document_cache
    answer_with DocumentCachedUserResource
  end

  private

  def answer_with(resource)
    document = resource.document(User.holding(titles), include: %i[roles groups])
    render json: document if stale?(**document.validators)
  end
end
