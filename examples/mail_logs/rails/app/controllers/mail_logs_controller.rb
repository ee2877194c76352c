# frozen_string_literal: true

class MailLogsController < ResourcesController
end
