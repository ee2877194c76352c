# frozen_string_literal: true

class CompanyStatisticsController < ResourcesController
end
